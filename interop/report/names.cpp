#include "interop/report/names.hpp"

#include <fmt/format.h>

namespace cistern::report {
namespace {

constexpr std::uint64_t kMostNumber = 1'000'000;  // larger names of streams are addresses

std::string baseName(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

std::string textOf(const recording::Frame& frame) {
  if (frame.file.empty()) return frame.function;
  const std::string place = frame.line == 0
                                ? baseName(frame.file)
                                : fmt::format("{}:{}", baseName(frame.file), frame.line);
  return frame.function.empty() ? place : fmt::format("{} {}", place, frame.function);
}

bool saysLine(const recording::Frame& frame) { return !frame.file.empty() && frame.line != 0; }

}  // namespace

std::string siteOf(const recording::Recording& recording, std::uint32_t stack) {
  if (stack == 0) return "unknown code";
  for (std::uint32_t at = stack; at != 0; at = recording.stacks[at].parent) {
    const recording::Frame& frame = recording.frames[recording.stacks[at].frame];
    if (saysLine(frame)) return textOf(frame);
  }
  return textOf(recording.frames[recording.stacks[stack].frame]);
}

std::string labelOf(const recording::Recording& recording, std::uint32_t label) {
  std::string text;
  for (std::uint32_t at = label; at != 0; at = recording.labels[at].parent)
    text = recording.labels[at].name + (text.empty() ? "" : "/") + text;
  return text;
}

std::string streamOf(const recording::Recording& recording, std::uint32_t stream) {
  const std::uint64_t name = recording.streams[stream];
  if (stream == 0 && name == 0) return "the default stream";
  return name <= kMostNumber ? fmt::format("stream {}", name) : fmt::format("stream {:#x}", name);
}

std::string poolOf(const recording::Recording& recording, std::uint32_t pool) {
  const recording::PoolName& name = recording.pools[pool];
  if (pool == 0) return "the default pool";
  return fmt::format("pool {}:{}", name.uuid, name.uid);
}

std::string countedBlocks(std::uint64_t blocks) {
  return blocks == 1 ? "1 block" : fmt::format("{} blocks", blocks);
}

}  // namespace cistern::report
