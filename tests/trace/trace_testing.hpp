// What the tests of the readers share: files that vanish, samples, and the message of an error.
#pragma once

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

#include "interop/trace/source.hpp"
#include "interop/trace/trace.hpp"

namespace cistern::trace::testing {

/// A path in the temporary folder that no one else has; what lies there at the end is removed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / unique(name)) {}
  TemporaryFile(const std::string& name, std::string_view content) : TemporaryFile(name) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

 private:
  static std::string unique(const std::string& name) {
    static std::atomic<int> count{0};
    return "cistern_" + std::to_string(::getpid()) + "_" + std::to_string(count++) + "_" + name;
  }

  std::filesystem::path path_;
};

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

}  // namespace cistern::trace::testing
