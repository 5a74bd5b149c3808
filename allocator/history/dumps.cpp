// A history is written to a file at once: by the program's verb, or when a request has failed.
#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstring>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "allocator/base/printable.hpp"
#include "allocator/base/replaced_file.hpp"
#include "allocator/history/engine_history.hpp"

namespace cistern {
namespace {

/// A program that tries again and again after a failure would fill the disk.
constexpr int kMostDumps = 4;

void writeWhole(const std::string& path, const std::string& text) try {
  ReplacedFile file(path);
  file.write(text);
  file.take();
} catch (const ReplacedFile::Failure& failure) {
  throw HistoryError(fmt::format("the history {} cannot {}: {}", printable(path), failure.what,
                                 std::strerror(failure.why)));
}

/// A path as one word of a shell's.
std::string quotedForShell(const std::string& path) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("/._-+=:@,%").find(c) != std::string_view::npos;
  };
  if (std::ranges::all_of(path, plain)) return path;
  std::string quoted = "'";
  for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return printable(quoted + "'");
}

}  // namespace

void EngineHistory::dump(const std::string& path, const OutOfMemoryReport* failure) {
  std::shared_ptr<HistoryNames> names = this->names();
  HistoryPart part;
  if (names != nullptr && names->settings.file.empty()) {
    part = whole();
  } else if (names != nullptr) {  // the events are in the file
    part = atItsEnd();
  } else {
    names = std::make_shared<HistoryNames>();
    names->device = engine_.deviceName();
    part = present(names, failure);
  }
  RecordingText text(names);
  const bool failed = !part.events.empty() && part.events.back().kind == HistoryKind::kFailed;
  text.begin(startOf(part), part.pools, failed);
  text.add(part);
  writeWhole(path, text.take());
}

void EngineHistory::failed(OutOfMemoryReport& report) noexcept try {
  noteFailed(report);
  const std::string& folder = engine_.options.oom_dump;
  static std::atomic<int> dumps{0};
  if (folder.empty() || dumps >= kMostDumps) return;
  const int number = ++dumps;
  if (number > kMostDumps) return;
  const std::string path = fmt::format("{}/oom-{}-{}.trace", folder, ::getpid(), number);
  try {
    dump(path, &report);
    report.dump = fmt::format("to see it: cistern report {} -o oom.html", quotedForShell(path));
  } catch (const std::exception& error) {
    report.dump = fmt::format("no dump was written: {}", error.what());
  }
} catch (...) {
  report.dump.clear();  // the host is short of memory
}

}  // namespace cistern
