#include "interop/report/leak_groups.hpp"

#include <algorithm>
#include <unordered_map>

namespace cistern::report {
namespace {

using recording::EventKind;

constexpr std::size_t kLeastSteps = 8;  // two a quarter

struct Key {
  std::uint64_t site, size;
  friend bool operator==(const Key& a, const Key& b) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t mixed = (key.site ^ (key.size << 32 | key.size >> 32)) * 0x9E3779B97F4A7C15;
    return std::size_t(mixed ^ mixed >> 29);
  }
};

void group(const Study& study, bool by_size, LeakGroups& all) {
  std::unordered_map<Key, std::uint32_t, KeyHash> numbers;
  all.of.reserve(study.lives.size());
  for (const Life& life : study.lives) {
    const std::uint64_t size = by_size && life.stack == 0 ? life.bytes : 0;
    const Key key{std::uint64_t(life.stack) << 32 | life.label, size};
    const auto [at, is_new] = numbers.try_emplace(key, std::uint32_t(all.groups.size()));
    if (is_new) {
      all.groups.emplace_back();
      all.groups.back().stack = life.stack;
      all.groups.back().label = life.label;
      all.groups.back().size = size;
    }
    all.of.push_back(at->second);
  }
}

/// Plays the events once. `end` has what a group holds now.
class Floors {
 public:
  Floors(const Study& study, const Quarters& quarters, LeakGroups& all)
      : study_(study), quarters_(quarters), all_(all) {}

  void find() {
    std::size_t allocation = 0;
    for (std::uint32_t number = 0; number < study_.events(); ++number) {
      beginQuarters(number);
      const recording::Event& event = study_.recorded().events[number];
      if (event.kind == EventKind::kAllocate) allocate(allocation++);
      if (event.kind == EventKind::kFree) free(event.value);
    }
    beginQuarters(study_.events());
    for (LeakGroup& group : all_.groups) {
      group.floors[1] = std::min(group.floors[1], group.floors[2]);
      group.floors[0] = std::min(group.floors[0], group.floors[1]);
    }
  }

 private:
  void beginQuarters(std::uint32_t number) {
    while (begun_ < quarters_.begins.size() && quarters_.begins[begun_] <= number) {
      for (LeakGroup& group : all_.groups) group.floors[begun_] = group.end;
      ++begun_;
    }
  }
  void allocate(std::size_t allocation) {
    LeakGroup& group = all_.groups[all_.of[allocation]];
    group.end += study_.lives[allocation].bytes;
    if (begun_ > 0) group.allocated += study_.lives[allocation].bytes;
  }
  void free(std::uint64_t allocation) {
    LeakGroup& group = all_.groups[all_.of[allocation]];
    group.end -= study_.lives[allocation].bytes;
    if (begun_ == 0) return;
    group.freed += study_.lives[allocation].bytes;
    std::uint64_t& floor = group.floors[begun_ - 1];
    floor = std::min(floor, group.end);
  }

  const Study& study_;
  const Quarters& quarters_;
  LeakGroups& all_;
  std::size_t begun_ = 0;  ///< how many of quarters_.begins have passed
};

}  // namespace

Quarters quartersOf(const Study& study) {
  std::vector<std::uint32_t> steps;
  const auto& events = study.recorded().events;
  for (std::uint32_t number = 0; number < events.size(); ++number)
    if (events[number].kind == EventKind::kMark) steps.push_back(number);
  Quarters quarters;
  quarters.in_steps = steps.size() >= kLeastSteps;
  quarters.end = quarters.in_steps ? steps.back() : study.events();
  const auto first = std::uint32_t(study.recorded().first_recorded);
  for (std::size_t i = 0; i < 3; ++i) {
    quarters.begins[i] =
        quarters.in_steps
            ? steps[steps.size() * (i + 1) / 4]
            : first + std::uint32_t(std::uint64_t(study.events() - first) * (i + 1) / 4);
  }
  return quarters;
}

LeakGroups leakGroupsOf(const Study& study, const Quarters& quarters, bool by_size) {
  LeakGroups all;
  group(study, by_size, all);
  Floors(study, quarters, all).find();
  return all;
}

}  // namespace cistern::report
