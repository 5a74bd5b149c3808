#include "interop/report/names.hpp"

#include <string_view>

#include <fmt/format.h>

namespace cistern::report {
namespace {

constexpr std::uint64_t kMostNumber = 1'000'000;  // larger names of streams are addresses

std::string baseName(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// A function without its parameters, as the page names it.
std::string withoutParameters(std::string function) {
  static constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (std::size_t at = 0; (at = function.find(kAnonymous)) != std::string::npos;)
    function.erase(at, kAnonymous.size());
  const std::size_t open = function.find('(');
  const bool is_call = open != std::string::npos && open >= 8 &&
                       std::string_view(function).substr(open - 8, 8) == "operator";
  return open == std::string::npos || open == 0 || is_call ? function : function.substr(0, open);
}

/// "train.py:41 in step", or "step in app" where the line is not known.
std::string textOf(const recording::Frame& frame) {
  const std::string file = frame.file == "??" ? "" : baseName(frame.file);
  const std::string function = withoutParameters(frame.function);
  const std::string& first = frame.line != 0 || function.empty() ? file : function;
  const std::string& second = frame.line != 0 ? function : file;
  const std::string place = frame.line == 0 ? first : fmt::format("{}:{}", first, frame.line);
  if (place.empty()) return "unknown code";
  return second.empty() || second == first ? place : fmt::format("{} in {}", place, second);
}

bool saysLine(const recording::Frame& frame) {
  return !frame.file.empty() && frame.file != "??" && frame.line != 0;
}

/// Where the C library begins a program or a thread, whether or not its file is known.
bool beginsProgram(const recording::Frame& frame) {
  return frame.function.starts_with("__libc_start") || frame.function == "_start" ||
         frame.function == "start_thread" || frame.function.starts_with("clone");
}

/// Packages that are installed, the system's files, shared libraries, and PyTorch's own sources.
bool isOfLibrary(const recording::Frame& frame) {
  const auto has = [&](std::string_view part) {
    return frame.file.find(part) != std::string::npos;
  };
  return beginsProgram(frame) || has("site-packages/") || has("dist-packages/") ||
         has("/lib/python") || has("/aten/") || has("/c10/") || has("torch/csrc/") ||
         frame.file.ends_with(".so") || has(".so.") || frame.file.starts_with('<') ||
         (frame.file.starts_with("/usr/") && !frame.file.starts_with("/usr/local/"));
}

/// The innermost frame of which `holds` is true; null if there is none.
template <class Condition>
const recording::Frame* innermost(const recording::Recording& recording, std::uint32_t stack,
                                  Condition holds) {
  for (std::uint32_t at = stack; at != 0; at = recording.stacks[at].parent) {
    const recording::Frame& frame = recording.frames[recording.stacks[at].frame];
    if (holds(frame)) return &frame;
  }
  return nullptr;
}

}  // namespace

std::string siteOf(const recording::Recording& recording, std::uint32_t stack) {
  if (stack == 0) return "unknown code";
  const auto own = [](const recording::Frame& f) { return saysLine(f) && !isOfLibrary(f); };
  const recording::Frame* frame = innermost(recording, stack, own);
  if (frame == nullptr) frame = innermost(recording, stack, saysLine);
  return textOf(frame != nullptr ? *frame : recording.frames[recording.stacks[stack].frame]);
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
