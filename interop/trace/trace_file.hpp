// A trace file, uncompressed: in memory, or piece by piece. The one place that reads files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "interop/trace/byte_source.hpp"
#include "interop/trace/format.hpp"
#include "interop/trace/read_limits.hpp"

namespace cistern::trace {

/// The longest uncompressed file taken: places and lengths inside a file are 32 bits.
inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 31;

/// The path that names the standard input.
inline constexpr std::string_view kStandardInput = "-";

/// A plain or gzip file that is open. Each function throws TraceError if the file cannot be read,
/// or is longer than kMaxFileBytes. It throws also if its gzip data is damaged, ends early, is
/// followed by something else or unpacks to more than `limits` allow.
class TraceFile final : public ByteSource {
 public:
  /// Throws TraceError also if the file is empty, is a device, or begins no format.
  explicit TraceFile(const std::filesystem::path& path, const ReadLimits& limits = {});
  ~TraceFile() override;

  Format format() const { return format_; }
  std::string_view next() override;
  /// All that next() has not given.
  std::string rest();

 private:
  class Input;

  void readStart();

  std::unique_ptr<Input> input_;
  std::string start_;  // what was read to tell the format
  bool given_start_ = false;
  Format format_ = Format::kCistern;
};

/// The file's name in errors.
std::string nameInErrors(const std::filesystem::path& path);

/// The file's name without folders and without ".gz" and one more extension.
std::string stemOf(const std::filesystem::path& path);

}  // namespace cistern::trace
