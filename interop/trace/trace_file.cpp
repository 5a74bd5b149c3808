#include "interop/trace/trace_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/bytes.hpp"
#include "interop/trace/gunzip.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::trace {
namespace {

constexpr std::size_t kChunk = 256 * kKiB;

class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path) : name_(nameInErrors(path)) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) fail("is a folder, not a trace");
    file_ = path == kStandardInput ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file_ < 0) fail(fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  ~InputFile() { close(file_); }

  const std::string& name() const { return name_; }

  /// Zero for a file that has none, such as a pipe.
  std::uint64_t size() const {
    struct stat about {};
    return fstat(file_, &about) == 0 ? static_cast<std::uint64_t>(about.st_size) : 0;
  }

  /// The next bytes; none at the end of the file.
  std::string_view read() {
    ssize_t got = 0;
    do {
      got = ::read(file_, chunk_.data(), chunk_.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
    return std::string_view(chunk_).substr(0, static_cast<std::size_t>(got));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw TraceError(name_, what); }

  std::string name_;
  int file_ = -1;
  std::string chunk_ = std::string(kChunk, '\0');
};

std::string readZipped(InputFile& file, std::string_view first, const ReadLimits& limits) {
  Gunzip gunzip(file.name(), limits.unpacked_bytes);
  for (std::string_view bytes = first; !bytes.empty(); bytes = file.read()) gunzip.take(bytes);
  return gunzip.finish();
}

std::string readPlain(InputFile& file, std::string_view first) {
  std::string content;
  content.reserve(std::min(file.size(), kMaxFileBytes) + 1);
  for (std::string_view bytes = first; !bytes.empty(); bytes = file.read()) {
    if (bytes.size() > kMaxFileBytes - content.size()) {
      throw TraceError(file.name(), fmt::format("is longer than {}, the longest trace taken",
                                                formatBytes(kMaxFileBytes)));
    }
    content += bytes;
  }
  return content;
}

}  // namespace

std::string loadFile(const std::filesystem::path& path, const ReadLimits& limits) {
  InputFile file(path);
  const std::string_view first = file.read();
  std::string content =
      Gunzip::isZipped(first) ? readZipped(file, first, limits) : readPlain(file, first);
  if (content.empty()) throw TraceError(file.name(), "is empty; expected a trace");
  return content;
}

std::string nameInErrors(const std::filesystem::path& path) {
  return path == kStandardInput ? "standard input" : path.string();
}

std::string stemOf(const std::filesystem::path& path) {
  const std::filesystem::path file = path.filename();
  return (file.extension() == ".gz" ? file.stem() : file).stem().string();
}

}  // namespace cistern::trace
