// Leaks: memory of which more and more is held, and hardly any is ever freed once it is old.
//
// A group of allocations (leak_groups.hpp) leaks if all of this holds:
// - it grows in the second, third and fourth quarter of the recording, each time beyond what it
//   ever falls back to; and in the fourth by at least half as much as on average before. Warm-up
//   and caches that fill up stop growing.
// - its blocks stay. Take half the median age of the blocks that are held at the end: of the blocks
//   that grew so old, at most one in ten was freed. A cache that replaces its entries fails here.
// - the program frees most of what else it allocates meanwhile, or says that it goes in steps. A
//   program that loads its data, or a recording of one forward pass, holds on to all, and leaks
//   not.
//
// No rule knows a size or a time: recordings differ in these by many orders of magnitude.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string_view>

#include "interop/report/analyses.hpp"
#include "interop/report/leak_groups.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;

constexpr std::size_t kGrowthMoments = 20;
constexpr std::size_t kMostLeaks = 50;
constexpr std::size_t kFewestBlocks = 3;  // one in each quarter that counts

bool keepsGrowing(const LeakGroup& group) {
  const std::uint64_t third = group.floors[2] - group.floors[1];
  const std::uint64_t second = group.floors[1] - group.floors[0];
  const std::uint64_t fourth = group.end - group.floors[2];
  return second > 0 && third > 0 && fourth >= (second + third) / 4;
}

/// The survivors of a group: the blocks that are held at the end, and were born after the first
/// quarter.
/// Invariant: held >= ages.size().
struct Survivors {
  std::vector<std::uint32_t> ages;  ///< in events
  std::uint64_t held = 0;           ///< blocks that are held at the end, older ones too
  std::uint64_t bytes = 0;          ///< of all these
  std::uint64_t stepped = 0;        ///< of those that were allocated in the steps that count
  std::uint32_t first = 0;          ///< the event that allocated the oldest of these
  std::uint32_t old_age = 0;
  std::uint64_t old_held = 0, old_freed = 0;  ///< blocks that grew as old as `old_age`
};

/// Whole steps of the program, by event number. A program that repeats the names of its moments is
/// back at the same place of its step wherever a name returns.
struct Steps {
  std::uint32_t first = 0, last = 0;
  std::uint64_t count = 0;  ///< 0: the program does not say that it steps
};

Steps stepsFrom(const Study& study, std::uint32_t begin) {
  std::map<std::string_view, std::vector<std::uint32_t>> by_name;
  std::vector<std::uint32_t> all;
  for (std::uint32_t number = begin; number < study.events(); ++number) {
    const recording::Event& event = study.recorded().events[number];
    if (event.kind != recording::EventKind::kMark) continue;
    all.push_back(number);
    by_name[study.recorded().marks[event.value]].push_back(number);
  }
  const std::vector<std::uint32_t>* steps = &all;
  for (const auto& [name, numbers] : by_name)
    if (numbers.size() > 2 && (steps == &all || numbers.size() > steps->size())) steps = &numbers;
  if (steps->size() < 2) return {};
  return {steps->front(), steps->back(), steps->size() - 1};
}

class LeakSearch {
 public:
  LeakSearch(const Study& study, bool by_size)
      : study_(study),
        quarters_(quartersOf(study)),
        steps_(quarters_.in_steps ? stepsFrom(study, quarters_.begins[0]) : Steps{}),
        groups_(leakGroupsOf(study, quarters_, by_size)),
        survivors_(groups_.groups.size()) {}

  json find() {
    gatherSurvivors();
    judgeAges();
    std::vector<std::uint32_t> leaking;
    for (std::uint32_t group = 0; group < survivors_.size(); ++group)
      if (leaks(group)) leaking.push_back(group);
    std::stable_sort(leaking.begin(), leaking.end(), [&](std::uint32_t a, std::uint32_t b) {
      return grown(a) > grown(b);  // all grow over the same time
    });
    if (leaking.size() > kMostLeaks) leaking.resize(kMostLeaks);
    return rows(leaking);
  }

 private:
  std::uint64_t grown(std::uint32_t group) const {
    return groups_.groups[group].end - groups_.groups[group].floors[0];
  }

  void gatherSurvivors() {
    for (std::uint32_t number = 0; number < study_.lives.size(); ++number) {
      const Life& life = study_.lives[number];
      Survivors& all = survivors_[groups_.of[number]];
      if (life.freed != study_.events()) continue;
      if (!keepsGrowing(groups_.groups[groups_.of[number]])) continue;
      if (all.held == 0) all.first = life.born;
      ++all.held;
      all.bytes += life.bytes;
      if (life.born >= steps_.first && life.born < steps_.last) all.stepped += life.bytes;
      if (life.born >= quarters_.begins[0]) all.ages.push_back(study_.events() - life.born);
    }
  }

  void judgeAges() {
    for (Survivors& all : survivors_) {
      if (all.ages.empty()) continue;
      const auto middle = all.ages.begin() + std::ptrdiff_t(all.ages.size() / 2);
      std::nth_element(all.ages.begin(), middle, all.ages.end());
      all.old_age = *middle / 2;
    }
    for (std::uint32_t number = 0; number < study_.lives.size(); ++number) {
      const Life& life = study_.lives[number];
      Survivors& all = survivors_[groups_.of[number]];
      if (all.ages.empty() || life.freed - life.born < all.old_age) continue;
      if (life.freed != study_.events()) {
        ++all.old_freed;
      } else if (life.born >= quarters_.begins[0]) {
        ++all.old_held;
      }
    }
  }

  bool leaks(std::uint32_t group) const {
    const Survivors& all = survivors_[group];
    return all.ages.size() >= kFewestBlocks && all.old_freed * 10 <= all.old_held &&
           (quarters_.in_steps || othersTurnOver(groups_.groups[group]));
  }

  bool othersTurnOver(const LeakGroup& but) const {
    std::uint64_t allocated = 0, freed = 0;
    for (const LeakGroup& group : groups_.groups) {
      allocated += group.allocated;
      freed += group.freed;
    }
    allocated -=
        but.allocated - std::min(but.allocated, but.freed);  // what it does not keep counts
    return allocated > 0 && freed >= allocated / 2;
  }

  json rows(const std::vector<std::uint32_t>& leaking) const {
    const std::vector<std::array<std::uint64_t, kGrowthMoments>> growth = growthOf(leaking);
    const double seconds =
        double(study_.timeAfter(study_.events()) - study_.timeAfter(quarters_.begins[0])) / 1e6;
    json all = json::array();
    for (std::size_t i = 0; i < leaking.size(); ++i) {
      const LeakGroup& group = groups_.groups[leaking[i]];
      const Survivors& survivors = survivors_[leaking[i]];
      const bool has_rate = study_.recorded().has_times && seconds > 0;
      all.push_back(
          {{"stack", group.stack},
           {"label", group.label},
           {"size", group.size == 0 ? json() : json(group.size)},
           {"blocks", survivors.held},
           {"bytes", survivors.bytes},
           {"first_us", study_.recorded().events[survivors.first].time_us},
           {"growth", growth[i]},
           {"bytes_per_second", has_rate ? json(double(grown(leaking[i])) / seconds) : json()},
           {"bytes_per_step",
            steps_.count == 0 ? json() : json(double(survivors.stepped) / double(steps_.count))}});
    }
    return all;
  }

  /// The bytes that each group holds at even moments, from the birth of its oldest block to the
  /// end.
  std::vector<std::array<std::uint64_t, kGrowthMoments>> growthOf(
      const std::vector<std::uint32_t>& leaking) const {
    std::vector<std::array<std::uint64_t, kGrowthMoments>> growth(leaking.size());
    std::vector<std::size_t> row(groups_.groups.size(), leaking.size());
    for (std::size_t i = 0; i < leaking.size(); ++i) row[leaking[i]] = i;
    for (std::uint32_t number = 0; number < study_.lives.size() && !leaking.empty(); ++number) {
      const std::size_t at = row[groups_.of[number]];
      if (at == leaking.size()) continue;
      const Life& life = study_.lives[number];
      const std::uint64_t start = study_.recorded().events[survivors_[leaking[at]].first].time_us;
      const std::uint64_t born = std::uint64_t(life.born) + 1;
      const std::size_t from = momentAtOrAfter(study_.timeAfter(born), start);
      const bool stays = life.freed == study_.events();
      const std::uint64_t freed = std::uint64_t(life.freed) + 1;
      const std::size_t to =
          stays ? kGrowthMoments : momentAtOrAfter(study_.timeAfter(freed), start);
      for (std::size_t i = from; i < to; ++i) growth[at][i] += life.bytes;
    }
    return growth;
  }

  /// Which of the even moments from `start` on. 0 for all times before.
  std::size_t momentAtOrAfter(std::uint64_t time_us, std::uint64_t start) const {
    if (time_us <= start) return 0;
    const std::uint64_t span =
        std::max<std::uint64_t>(study_.timeAfter(study_.events()) - start, 1);
    const auto passed =
        std::size_t(double(time_us - start) / double(span) * double(kGrowthMoments));
    return std::min(passed, kGrowthMoments - 1);
  }

  const Study& study_;
  const Quarters quarters_;
  const Steps steps_;
  const LeakGroups groups_;
  std::vector<Survivors> survivors_;  ///< by group; empty where the group does not keep growing
};

}  // namespace

json leaks(const Study& study) {
  if (study.lives.empty()) return json::array();
  json found = LeakSearch(study, true).find();
  // Leaked blocks of varying sizes show only together, where nobody knows their stacks.
  return found.empty() ? LeakSearch(study, false).find() : found;
}

}  // namespace cistern::report
