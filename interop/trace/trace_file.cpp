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

}  // namespace

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
  std::string_view read() {
    ssize_t got = 0;
    do {
      got = ::read(file_, chunk_.data(), chunk_.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
    return std::string_view(chunk_).substr(0, static_cast<std::size_t>(got));
  }

  [[noreturn]] void fail(const std::string& what) const { throw TraceError(name_, what); }

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

  std::string name_;
  int file_ = -1;
  std::string chunk_ = std::string(kChunk, '\0');
};

// The file as next() gives it: out of its gzip, and no longer than is taken.
class TraceFile::Input {
 public:
  Input(const std::filesystem::path& path, const ReadLimits& limits)
      : file_(path), limits_(limits) {}

  const std::string& name() const { return file_.name(); }

  /// A guess of the whole length; 0 where there is none.
  std::uint64_t expectedBytes() const {
    return gunzip_ ? 0 : std::min(file_.size(), kMaxFileBytes);
  }

  std::string_view next() {
    if (!began_) begin();
    if (!gunzip_) return nextPlain();
    while (true) {
      const std::string_view packed = take();
      if (packed.empty()) {
        gunzip_->finish();
        return {};
      }
      const std::string_view unpacked = gunzip_->take(packed);
      if (!unpacked.empty()) return unpacked;
    }
  }

 private:
  // Two bytes tell gzip; a pipe may give one at a time.
  void begin() {
    began_ = true;
    std::string_view piece = file_.read();
    while (!piece.empty() && first_.size() + piece.size() < 2) {
      first_ += piece;
      piece = file_.read();
    }
    first_ += piece;
    if (Gunzip::isZipped(first_)) gunzip_.emplace(file_.name(), limits_.unpacked_bytes);
  }

  std::string_view take() {
    if (given_first_) return file_.read();
    given_first_ = true;
    return first_;
  }

  std::string_view nextPlain() {
    const std::string_view piece = take();
    if (piece.size() > kMaxFileBytes - taken_) {
      file_.fail(
          fmt::format("is longer than {}, the longest trace taken", formatBytes(kMaxFileBytes)));
    }
    taken_ += piece.size();
    return piece;
  }

  InputFile file_;
  const ReadLimits limits_;
  std::optional<Gunzip> gunzip_;
  bool began_ = false;
  std::string first_;  // what told whether it is gzip
  bool given_first_ = false;
  std::uint64_t taken_ = 0;  // bytes of a plain file
};

TraceFile::TraceFile(const std::filesystem::path& path, const ReadLimits& limits)
    : input_(std::make_unique<Input>(path, limits)) {
  readStart();
}

TraceFile::~TraceFile() = default;

// A short file is read whole here. An endless stream of something else ends here.
void TraceFile::readStart() {
  while (start_.size() < kFormatBytes) {
    const std::string_view piece = input_->next();
    if (piece.empty()) break;
    start_ += piece;
  }
  if (start_.empty()) {
    throw TraceError(input_->name(), fmt::format("is empty; {}", kHowToRecord));
  }
  format_ = formatOf(start_, input_->name());
}

std::string_view TraceFile::next() {
  if (given_start_) return input_->next();
  given_start_ = true;
  return start_;
}

std::string TraceFile::rest() {
  std::string content;
  content.reserve(input_->expectedBytes() + 1);
  for (std::string_view piece = next(); !piece.empty(); piece = next()) content += piece;
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
