#include "interop/report/comparison.hpp"

#include <algorithm>
#include <vector>

#include "interop/report/holders.hpp"
#include "interop/report/names.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;

constexpr std::size_t kMostChanges = 200;

std::string textOfStack(const recording::Recording& recorded, std::uint32_t stack) {
  std::string text;
  for (; stack != 0; stack = recorded.stacks[stack].parent) {
    const recording::Frame& frame = recorded.frames[recorded.stacks[stack].frame];
    text += frame.function + '\t' + frame.file + '\n';
  }
  return text;
}

struct Change {
  std::string label;
  PeakHolder before, after;
  std::uint64_t bytes() const {
    return std::max(before.bytes, after.bytes) - std::min(before.bytes, after.bytes);
  }
};

json rowsOf(std::vector<Change> changes) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.bytes() > b.bytes(); });
  if (changes.size() > kMostChanges) changes.resize(kMostChanges);
  json rows = json::array();
  for (const Change& c : changes)
    rows.push_back({c.before.stack, c.after.stack, c.label, c.before.bytes, c.after.bytes,
                    c.before.blocks, c.after.blocks});
  return rows;
}

}  // namespace

PeakHolders peakHoldersOf(const Study& study) {
  PeakHolders peak;
  const Living living = livingAfter(study.lives, study.peakDone(), study.sleeps);
  peak.peak = askedBytes(study.lives, living);
  for (const Holder& holder : holdersOf(study.lives, living)) {
    PeakHolder& same = peak.holders[{textOfStack(study.recorded(), holder.stack),
                                     labelOf(study.recorded(), holder.label)}];
    if (same.stack < 0) same.stack = holder.stack;  // the largest comes first
    same.bytes += holder.bytes;
    same.blocks += holder.blocks;
  }
  return peak;
}

json compared(const PeakHolders& before, const PeakHolders& after) {
  std::map<std::pair<std::string, std::string>, Change> changes;
  for (const auto& [key, holder] : before.holders) changes[key].before = holder;
  for (const auto& [key, holder] : after.holders) changes[key].after = holder;
  std::vector<Change> grew, went;
  for (auto& [key, change] : changes) {
    change.label = key.second;
    if (change.after.bytes > change.before.bytes) grew.push_back(change);
    if (change.after.bytes < change.before.bytes) went.push_back(change);
  }
  return {{"before", 0},
          {"after", 1},
          {"grew", rowsOf(std::move(grew))},
          {"went", rowsOf(std::move(went))},
          {"peak", {before.peak, after.peak}}};
}

}  // namespace cistern::report
