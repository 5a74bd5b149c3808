// The bytes asked for over time, split by pool, stream, label and call site.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "interop/report/analyses.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;

constexpr std::size_t kMostKeys = 14;

/// One way to split the bytes: each key has a number.
class Split {
 public:
  Split(std::uint32_t Life::*key, std::size_t keys) : key_(key), now_(keys), peak_(keys) {}

  void enter(const Life& life) {
    std::uint64_t& now = now_[life.*key_];
    now += life.bytes;
    std::uint64_t& peak = peak_[life.*key_];
    peak = std::max(peak, now);
  }
  void leave(const Life& life) { now_[life.*key_] -= life.bytes; }

  /// Chooses the keys with the highest peaks. Everything begins anew.
  void choose() {
    chosen_.resize(peak_.size());
    std::iota(chosen_.begin(), chosen_.end(), std::uint32_t(0));
    const std::size_t most = std::min(kMostKeys, chosen_.size());
    std::partial_sort(chosen_.begin(), chosen_.begin() + std::ptrdiff_t(most), chosen_.end(),
                      [&](std::uint32_t a, std::uint32_t b) {
                        return peak_[a] != peak_[b] ? peak_[a] > peak_[b] : a < b;
                      });
    chosen_.resize(most);
    while (!chosen_.empty() && peak_[chosen_.back()] == 0) chosen_.pop_back();
    rows_.resize(chosen_.size() + 1);  // the last one has what is left
    std::fill(now_.begin(), now_.end(), 0);
  }
  /// The chosen keys' bytes become a column that adds up to `asked`.
  void column(std::uint64_t asked) {
    for (std::size_t i = 0; i < chosen_.size(); ++i) {
      rows_[i].push_back(now_[chosen_[i]]);
      asked -= now_[chosen_[i]];
    }
    rows_.back().push_back(asked);
  }
  json rows() const {
    json all = json::array();
    for (std::size_t i = 0; i < chosen_.size(); ++i) all.push_back({chosen_[i], rows_[i]});
    if (std::any_of(rows_.back().begin(), rows_.back().end(), [](auto b) { return b != 0; }))
      all.push_back({-1, rows_.back()});
    return all;
  }

 private:
  std::uint32_t Life::*key_;
  std::vector<std::uint64_t> now_, peak_;  ///< by key
  std::vector<std::uint32_t> chosen_;
  std::vector<std::vector<std::uint64_t>> rows_;
};

class Splits {
 public:
  explicit Splits(const Study& study)
      : study_(study),
        splits_{Split(&Life::pool, study.recorded().pools.size()),
                Split(&Life::stream, study.recorded().streams.size()),
                Split(&Life::label, study.recorded().labels.size()),
                Split(&Life::stack, study.recorded().stacks.size())} {}

  json run() {
    InUse all = study_.inUse();
    for (std::uint32_t number = 0; number < study_.events(); ++number) apply(all, number);
    for (Split& split : splits_) split.choose();
    InUse again = study_.inUse();
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < study_.peaks.done.size(); ++i) {
      for (; number < study_.peaks.done[i]; ++number) apply(again, number);
      for (Split& split : splits_) split.column(study_.peaks.asked[i]);
    }
    return {{"pool", splits_[0].rows()},
            {"stream", splits_[1].rows()},
            {"label", splits_[2].rows()},
            {"site", splits_[3].rows()}};
  }

 private:
  void apply(InUse& in_use, std::uint32_t number) {
    in_use.apply(
        number,
        [&](const Life& life) {
          for (Split& split : splits_) split.enter(life);
        },
        [&](const Life& life) {
          for (Split& split : splits_) split.leave(life);
        });
  }

  const Study& study_;
  std::array<Split, 4> splits_;
};

}  // namespace

json stacked(const Study& study) { return Splits(study).run(); }

}  // namespace cistern::report
