// A file that is being written, plain or as gzip.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "allocator/base/replaced_file.hpp"

struct gzFile_s;

namespace cistern::trace {

/// Becomes the file at its path when it is closed. Until then, and if it never is, the previous
/// file is still there (ReplacedFile has the exceptions). All functions throw TraceError if the
/// file cannot be written. Not for several threads.
class OutputFile {
 public:
  /// As gzip if the path ends in ".gz".
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view text);
  /// The last bytes leave here, so a full disk may show only now.
  void close();

 private:
  static std::string refusal(int why);
  [[noreturn]] void fail(int why) const;

  std::string name_;
  ReplacedFile whole_;
  gzFile_s* file_ = nullptr;
};

}  // namespace cistern::trace
