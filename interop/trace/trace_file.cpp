#include "interop/trace/trace_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocator/base/bytes.hpp"
#include "interop/trace/format.hpp"
#include "interop/trace/gunzip.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::trace {
namespace {

constexpr std::size_t kChunk = 256 * kKiB;

class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path) : name_(nameInErrors(path)) {
    if (path != kStandardInput) requireNoDevice(path);
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
  std::string_view read() { return std::string_view(chunk_).substr(0, readAt(0)); }

  /// The first bytes: enough to tell the format, unless the file is shorter. A pipe may give few at
  /// a time.
  std::string_view readStart() {
    std::size_t length = 0;
    for (std::size_t got = 1; got > 0 && length < kFormatBytes; length += got) got = readAt(length);
    if (length == 0) fail(fmt::format("is empty; {}", kHowToRecord));
    return std::string_view(chunk_).substr(0, length);
  }

 private:
  // A device may have no end. Opening one may act on it.
  void requireNoDevice(const std::filesystem::path& path) const {
    struct stat there {};
    if (stat(path.c_str(), &there) != 0) return;
    if (S_ISDIR(there.st_mode)) fail("is a folder, not a trace");
    if (S_ISCHR(there.st_mode) || S_ISBLK(there.st_mode)) {
      fail("is a device, not a trace; a trace is a file, a pipe, or - for the standard input");
    }
  }

  std::size_t readAt(std::size_t at) {
    ssize_t got = 0;
    do {
      got = ::read(file_, chunk_.data() + at, chunk_.size() - at);
    } while (got < 0 && errno == EINTR);
    if (got < 0) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
    return static_cast<std::size_t>(got);
  }

  [[noreturn]] void fail(const std::string& what) const { throw TraceError(name_, what); }

  std::string name_;
  int file_ = -1;
  std::string chunk_ = std::string(kChunk, '\0');
};

std::string readZipped(InputFile& file, std::string_view first, const ReadLimits& limits) {
  Gunzip gunzip(file.name(), limits.unpacked_bytes);
  for (std::string_view bytes = first; !bytes.empty(); bytes = file.read()) gunzip.take(bytes);
  std::string content = gunzip.finish();
  if (content.empty()) throw TraceError(file.name(), fmt::format("is empty; {}", kHowToRecord));
  return content;
}

// An endless stream of something else ends here.
std::string readPlain(InputFile& file, std::string_view first) {
  (void)formatOf(first, file.name());
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
  const std::string_view first = file.readStart();
  return Gunzip::isZipped(first) ? readZipped(file, first, limits) : readPlain(file, first);
}

std::string nameInErrors(const std::filesystem::path& path) {
  return path == kStandardInput ? "standard input" : path.string();
}

std::string stemOf(const std::filesystem::path& path) {
  const std::filesystem::path file = path.filename();
  return (file.extension() == ".gz" ? file.stem() : file).stem().string();
}

}  // namespace cistern::trace
