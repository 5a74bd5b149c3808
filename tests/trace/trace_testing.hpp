// What the tests of the readers share: samples, and the message of an error.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "interop/trace/trace.hpp"
#include "interop/trace/trace_file.hpp"
#include "tests/support/temporary_file.hpp"

namespace cistern::trace::testing {

using test::TemporaryFile;

inline std::filesystem::path samplePath(const std::string& name) {
  return std::filesystem::path(CISTERN_SOURCE_DIR) / "tests/trace/samples" / name;
}

/// What parsing `content` as a file called "t" complains of; empty if it does not.
inline std::string complaint(std::string_view content) {
  try {
    parseTrace(content, "t");
  } catch (const TraceError& error) {
    return error.what();
  }
  return "";
}

/// The same for reading a file, without the path that starts the message.
inline std::string fileComplaint(const std::filesystem::path& path) {
  try {
    readTrace(path);
  } catch (const TraceError& error) {
    return std::string(error.what()).substr(path.string().size());
  }
  return "";
}

/// Parses and audits.
inline Trace parsed(std::string_view content) {
  Trace trace = parseTrace(content, "t");
  audit(trace);
  return trace;
}

inline TraceEvent allocation(std::uint64_t bytes, int stream, std::uint64_t delta_us) {
  return {bytes, delta_us, stream, EventKind::kAllocate};
}
inline TraceEvent release(std::uint64_t allocation, int stream, std::uint64_t delta_us) {
  return {allocation, delta_us, stream, EventKind::kFree};
}
inline TraceEvent usesEnd(std::uint64_t allocation, int stream, std::uint64_t delta_us) {
  return {allocation, delta_us, stream, EventKind::kUsesEnd};
}

}  // namespace cistern::trace::testing
