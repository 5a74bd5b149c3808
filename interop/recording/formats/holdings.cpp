#include "interop/recording/formats/holdings.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "interop/trace/hash.hpp"

namespace cistern::recording {
namespace {

constexpr std::size_t kDeepest = 1000;  // of a stack or a label that is shown

}  // namespace

std::size_t peakOf(const Recording& recording) {
  std::vector<std::uint64_t> sizes;
  sizes.reserve(recording.allocations);
  std::uint64_t asked = 0, most = 0;
  std::size_t peak = 0;
  for (std::size_t i = 0; i < recording.events.size(); ++i) {
    const Event& event = recording.events[i];
    if (event.kind == EventKind::kFree) asked -= sizes[event.value];
    if (event.kind != EventKind::kAllocate) continue;
    sizes.push_back(event.value);
    asked += event.value;
    if (asked <= most) continue;
    most = asked;
    peak = i + 1;
  }
  return peak;
}

std::vector<bool> livingAt(const Recording& recording, std::size_t events) {
  std::vector<bool> living;
  for (std::size_t i = 0; i < events; ++i) {
    const Event& event = recording.events[i];
    if (event.kind == EventKind::kAllocate) living.push_back(true);
    if (event.kind == EventKind::kFree) living[event.value] = false;
  }
  return living;
}

std::vector<Holding> holdingsAt(const Recording& recording, std::size_t events) {
  const std::vector<bool> living = livingAt(recording, events);
  std::unordered_map<std::uint64_t, Holding, trace::SeededHash> held;
  std::size_t allocation = 0;
  for (std::size_t i = 0; i < events; ++i) {
    const Event& event = recording.events[i];
    if (event.kind != EventKind::kAllocate || !living[allocation++]) continue;
    const Place& place = recording.placeOf(event);
    Holding& holding = held[(std::uint64_t{place.stack} << 32) | place.label];
    holding.stack = place.stack;
    holding.label = place.label;
    holding.bytes += event.value;
    ++holding.blocks;
  }
  std::vector<Holding> sorted;
  for (const auto& [key, holding] : held) sorted.push_back(holding);
  const auto order = [](const Holding& h) { return std::tuple(~h.bytes, h.stack, h.label); };
  std::sort(sorted.begin(), sorted.end(),
            [&](const Holding& a, const Holding& b) { return order(a) < order(b); });
  return sorted;
}

std::string labelPath(const Recording& recording, std::uint32_t label) {
  std::string path;
  for (std::size_t i = 0; label > 0 && i < kDeepest; label = recording.labels[label].parent, ++i) {
    path = recording.labels[label].name + (path.empty() ? "" : " / ") + path;
  }
  return path;
}

std::string frameText(const Frame& frame) {
  if (frame.file.empty()) return frame.function;
  if (frame.line == 0) return fmt::format("{} ({})", frame.function, frame.file);
  return fmt::format("{} ({}:{})", frame.function, frame.file, frame.line);
}

std::string stackText(const Recording& recording, std::uint32_t stack) {
  std::string text;
  for (std::size_t i = 0; stack > 0 && i < kDeepest; stack = recording.stacks[stack].parent, ++i) {
    text += frameText(recording.frames[recording.stacks[stack].frame]) + "\n";
  }
  return text;
}

}  // namespace cistern::recording
