// Tells the formats apart and calls the reader.
#include <algorithm>

#include "interop/trace/readers.hpp"
#include "interop/trace/trace_file.hpp"

namespace cistern::trace {
namespace {

bool startsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

// Protocol 2 and later start with their version; 0 and 1 with a dict, empty or after a mark.
bool looksLikePickle(std::string_view content) {
  return content[0] == '\x80' || content[0] == '}' || startsWith(content, "(d");
}

// Programs print before they log, so the header may come a little later.
bool looksLikeRmm(std::string_view content) {
  constexpr std::size_t kFar = 4096;
  std::size_t start = 0;
  while (start < std::min(content.size(), kFar)) {
    const std::size_t end = std::min(content.find('\n', start), content.size());
    if (looksLikeRmmHeader(content.substr(start, end - start))) return true;
    start = end + 1;
  }
  return false;
}

bool looksLikeCistern(std::string_view content) {
  const std::size_t first = content.find_first_not_of("\r\n");
  if (first == std::string_view::npos) return false;
  const std::string_view text = content.substr(first);
  return text[0] == '#' || startsWith(text, "a ") || startsWith(text, "f ") ||
         startsWith(text, "e ");
}

[[noreturn]] void failUnknown(std::string_view content, const std::string& file) {
  const char* hint = startsWith(content, "PK\x03\x04")
                         ? "; this is a zip: write snapshots with torch.cuda.memory._dump_snapshot"
                         : "";
  throw TraceError(file, TextPlace{1, 1},
                   "expected a Cistern trace, an RMM log or a PyTorch memory snapshot, found " +
                       quoted(content.substr(0, content.find('\n'))) + hint);
}

}  // namespace

Trace parseTrace(std::string_view content, const std::string& file) {
  if (content.empty()) throw TraceError(file, "is empty; expected a trace");
  if (content.size() > kMaxFileBytes) throw TraceError(file, "is longer than any trace taken");
  if (looksLikePickle(content)) return readPytorch(content, file);
  if (looksLikeRmm(content)) return readRmm(content, file);
  if (looksLikeCistern(content)) return readCistern(content, file);
  failUnknown(content, file);
}

Trace readTrace(const std::filesystem::path& path, const ReadLimits& limits) {
  Trace trace = parseTrace(loadFile(path, limits), nameInErrors(path));
  if (trace.name.empty()) trace.name = path == kStandardInput ? "stdin" : stemOf(path);
  return trace;
}

}  // namespace cistern::trace
