// Files that vanish at the end of a test.
#pragma once

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <unistd.h>

namespace cistern::test {

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
  /// What lies there now; empty when nothing does.
  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  static std::string unique(const std::string& name) {
    static std::atomic<int> count{0};
    return "cistern_" + std::to_string(::getpid()) + "_" + std::to_string(count++) + "_" + name;
  }

  std::filesystem::path path_;
};

}  // namespace cistern::test
