#include "interop/trace/format.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "interop/trace/text_cursor.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::trace {
namespace {

using namespace std::string_view_literals;

// Protocol 2 and later start with their version; 0 and 1 with a dict, empty or after a mark.
bool looksLikePickle(std::string_view start) {
  return start[0] == '\x80' || start[0] == '}' || start.starts_with("(d");
}

// Programs print before they log, so the header may come a little later.
bool looksLikeRmm(std::string_view start) {
  constexpr std::size_t kFar = 4096;
  std::size_t line = 0;
  while (line < std::min(start.size(), kFar)) {
    const std::size_t end = std::min(start.find('\n', line), start.size());
    if (looksLikeRmmHeader(start.substr(line, end - line))) return true;
    line = end + 1;
  }
  return false;
}

bool looksLikeCistern(std::string_view start) {
  const std::size_t first = start.find_first_not_of("\r\n");
  if (first == std::string_view::npos) return false;
  const std::string_view text = start.substr(first);
  return text[0] == '#' || text.starts_with("a ") || text.starts_with("f ") ||
         text.starts_with("e ");
}

/// A kind of file that people take for a trace, or that holds one.
struct Relative {
  std::string_view start;
  const char* hint;
};

constexpr std::array kRelatives = {
    Relative{"PK\x03\x04"sv,
             "a zip: write snapshots with torch.cuda.memory._dump_snapshot; of a trace in a zip: "
             "`unzip -p FILE | cistern replay -`"},
    Relative{"\x28\xb5\x2f\xfd"sv, "zstd: `zstd -dc FILE | cistern replay -`"},
    Relative{"\xfd\x37zXZ\x00"sv, "xz: `xz -dc FILE | cistern replay -`"},
    Relative{"BZh"sv, "bzip2: `bzip2 -dc FILE | cistern replay -`"},
    Relative{"\x04\x22\x4d\x18"sv, "lz4: `lz4 -dc FILE | cistern replay -`"},
};

std::string hintFor(std::string_view start) {
  for (const Relative& relative : kRelatives) {
    if (start.starts_with(relative.start)) return std::string("; this is ") + relative.hint;
  }
  return "";
}

}  // namespace

bool looksLikeRmmHeader(std::string_view line) {
  constexpr std::ptrdiff_t kMost = 4;
  const std::string no_file;
  TextCursor cursor(line, no_file);
  if (!cursor.nextLine()) return false;
  std::ptrdiff_t known = 0;
  while (!cursor.atLineEnd()) {
    known += std::count(kRmmColumns.begin(), kRmmColumns.end(), cursor.field(','));
  }
  return known >= kMost;
}

Format formatOf(std::string_view start, const std::string& file) {
  if (looksLikePickle(start)) return Format::kPytorch;
  if (start[0] == '{') return Format::kSnapshot;
  if (looksLikeRmm(start)) return Format::kRmm;
  if (looksLikeCistern(start)) return Format::kCistern;
  throw TraceError(file, TextPlace{1, 1},
                   "expected a Cistern trace, an RMM log or a PyTorch memory snapshot, found " +
                       quoted(start.substr(0, start.find('\n'))) + hintFor(start));
}

const char* nameOf(Format format) {
  constexpr std::array<const char*, 4> kNames = {
      "a Cistern trace", "an RMM log", "a PyTorch memory snapshot", "a snapshot of Cistern"};
  return kNames[static_cast<std::size_t>(format)];
}

void failEmpty(Format format, const std::string& file) {
  const std::string why =
      format == Format::kRmm
          ? "records no allocation behind its header; set RMM's logging resource before the first "
            "one, and flush() it at the end"
          : fmt::format("records no allocation; {}", kHowToRecord);
  throw TraceError(file, why);
}

void failNoGpu(Format format, const std::string& file) {
  throw TraceError(file, fmt::format("this is {}, and --gpu chooses one of the GPUs in a PyTorch "
                                     "memory snapshot",
                                     nameOf(format)));
}

}  // namespace cistern::trace
