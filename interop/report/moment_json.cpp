// The words of the page on one moment: who holds what, what is free and why, what would have
// helped.
#include <algorithm>
#include <array>

#include "interop/report/advice.hpp"
#include "interop/report/fits_without.hpp"
#include "interop/report/holders.hpp"
#include "interop/report/moments.hpp"
#include "interop/report/unused.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;
using recording::Failure;

constexpr std::size_t kMostHolders = 200;
constexpr std::array<const char*, 5> kKinds = {"start", "peak", "failure", "mark", "end"};

json nullIfZero(std::uint64_t bytes) { return bytes == 0 ? json() : json(bytes); }

class MomentStory {
 public:
  MomentStory(const Study& study, const Moment& moment, const json& leaks)
      : study_(study),
        moment_(moment),
        leaks_(leaks),
        living_(livingAfter(study.lives, moment.done, study.sleeps)),
        holders_(holdersOf(study.lives, living_)) {
    if (knowsPlaces()) reserved_ = reservedAfter(study.recorded(), moment.done);
    if (!moment.failure) return;
    const recording::Event& event = study.recorded().events[*moment.failure];
    const recording::Place& place = study.recorded().placeOf(event);
    request_ = {event.value, event.stream, place.pool, place.label, place.stack};
    failure_ = study.recorded().failures[place.failure];
  }

  json tell() {
    const std::vector<recording::Unused> unused = unusedMemory();
    return {{"kind", kKinds[std::size_t(moment_.kind)]},
            {"title", moment_.title},
            {"at_us", moment_.at_us ? *moment_.at_us : study_.timeAfter(moment_.done)},
            {"event", moment_.done},
            {"asked", askedBytes(study_.lives, living_)},
            {"asleep", asleepBytes(study_.lives, living_)},
            {"allocated", allocated()},
            {"reserved", nullIfZero(reservedBytes())},
            {"limit", nullIfZero(limit())},
            {"available", available() ? json(*available()) : json()},
            {"device_free", knowsDeviceFree() ? json(failure_.device_free) : json()},
            {"request", requestJson()},
            {"holders", holdersJson()},
            {"unused", unusedJson(unused)},
            {"advice", advice(unused)},
            {"device_error", failure_.device_error},
            {"window", nullptr}};
  }

 private:
  bool knowsPlaces() const {
    return study_.recorded().has_reserved && study_.recorded().has_addresses;
  }
  /// An allocator counts blocks that are asleep, too.
  std::uint64_t allocated() const {
    const bool told = failure_.allocated != 0 && living_.asleep.empty();
    return told ? failure_.allocated : takenBytes(study_.lives, living_);
  }
  std::uint64_t limit() const {
    return failure_.limit != 0 ? failure_.limit : study_.subject.limit.value_or(0);
  }
  std::uint64_t reservedBytes() const {
    if (failure_.reserved != 0) return failure_.reserved;
    if (!study_.recorded().has_reserved) return 0;
    return reservedBytesAfter(study_.recorded(), moment_.done);
  }

  /// PyTorch tells what the device had free, and not what it has in all.
  bool knowsDeviceFree() const { return failure_.device_total != 0 || failure_.device_free != 0; }

  json requestJson() const {
    if (!request_) return nullptr;
    return {{"bytes", request_->bytes},
            {"stream", request_->stream},
            {"pool", request_->pool},
            {"label", request_->label},
            {"stack", request_->stack}};
  }

  json holdersJson() const {
    json rows = json::array();
    Holder rest;
    for (std::size_t i = 0; i < holders_.size(); ++i) {
      const Holder& h = holders_[i];
      if (i < kMostHolders) {
        rows.push_back({h.stack, h.label, h.pool, h.stream, h.blocks, h.bytes, h.largest});
        continue;
      }
      rest.blocks += h.blocks;
      rest.bytes += h.bytes;
      rest.largest = std::max(rest.largest, h.largest);
    }
    if (rest.blocks != 0) rows.push_back({-1, 0, 0, 0, rest.blocks, rest.bytes, rest.largest});
    return rows;
  }

  std::vector<recording::Unused> unusedMemory() const {
    if (!failure_.unused.empty()) return failure_.unused;
    if (!knowsPlaces()) return {};
    return unusedBy(request_, gapsIn(reserved_, study_.lives, living_), study_.lives, living_);
  }

  json unusedJson(const std::vector<recording::Unused>& unused) const {
    json rows = json::array();
    for (const recording::Unused& part : unused)
      rows.push_back({{"why", part.why},
                      {"bytes", part.bytes},
                      {"largest", part.largest},
                      {"text", textOf(part, request_.has_value())}});
    return rows;
  }

  std::vector<std::string> advice(const std::vector<recording::Unused>& unused) const {
    std::vector<std::string> all;
    if (!request_) return all;
    if (!failure_.advice.empty()) all.push_back(failure_.advice);
    const std::optional<std::uint64_t> left = available();
    Shortage shortage{*request_, left.value_or(0), left.has_value(),
                      unused,    holders_,         leakingHolders()};
    shortage.explained = !failure_.advice.empty();
    if (knowsPlaces()) {
      shortage.fits_without = [this, left](const Holder& holder) {
        return fitsWithout(*request_, reserved_, study_.lives, living_, holder, left);
      };
    }
    const std::vector<std::string> more = adviceFor(study_.recorded(), shortage);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  /// The bytes that the allocator could still have taken from the device, if that is known.
  std::optional<std::uint64_t> available() const {
    std::optional<std::uint64_t> left;
    const std::uint64_t reserved = reservedBytes();
    if (limit() != 0 && reserved != 0) left = limit() > reserved ? limit() - reserved : 0;
    if (knowsDeviceFree())
      left = std::min(left.value_or(failure_.device_free), failure_.device_free);
    return left;
  }

  /// A leak is a stack and label, in whatever pools and streams. One that is known by its size
  /// alone has no holder of its own.
  std::vector<Holder> leakingHolders() const {
    std::vector<Holder> leaking;
    for (const Holder& holder : holders_) {
      const auto known = std::find_if(leaking.begin(), leaking.end(), [&](const Holder& other) {
        return other.stack == holder.stack && other.label == holder.label;
      });
      if (known != leaking.end()) {
        known->blocks += holder.blocks;
        known->bytes += holder.bytes;
        continue;
      }
      const auto is_holders = [&](const json& leak) {
        return leak["stack"] == holder.stack && leak["label"] == holder.label &&
               leak["size"].is_null();
      };
      if (std::any_of(leaks_.begin(), leaks_.end(), is_holders)) leaking.push_back(holder);
    }
    std::stable_sort(leaking.begin(), leaking.end(),
                     [](const Holder& a, const Holder& b) { return a.bytes > b.bytes; });
    return leaking;
  }

  const Study& study_;
  const Moment& moment_;
  const json& leaks_;
  const Living living_;
  const std::vector<Holder> holders_;
  recording::ReservedRanges reserved_;
  std::optional<Request> request_;
  Failure failure_;  ///< empty if no request failed
};

}  // namespace

json momentJson(const Study& study, const Moment& moment, const json& leaks) {
  return MomentStory(study, moment, leaks).tell();
}

}  // namespace cistern::report
