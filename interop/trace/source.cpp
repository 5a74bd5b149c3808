#include "interop/trace/source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <zlib.h>

#include "allocator/base/bytes.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::trace {
namespace {

constexpr std::size_t kChunk = 4 * kMiB;

struct CloseGz {
  void operator()(gzFile file) const { gzclose_r(file); }
};
using GzReader = std::unique_ptr<gzFile_s, CloseGz>;

GzReader openForReading(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw TraceError(path.string(), "is a folder, not a trace");
  }
  GzReader file(gzopen(path.c_str(), "rb"));
  if (!file) {
    throw TraceError(path.string(), fmt::format("cannot be opened: {}", std::strerror(errno)));
  }
  gzbuffer(file.get(), 256 * kKiB);
  return file;
}

// Zero for what has none, such as a pipe.
std::uint64_t sizeOf(const std::filesystem::path& path) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

// zlib hands out what it could decode before it says that the data ended early, so this is asked
// after every read, also those that succeeded.
void requireSound(gzFile file, const std::string& name) {
  int code = Z_OK;
  const char* text = gzerror(file, &code);
  if (code == Z_OK || code == Z_STREAM_END) return;
  if (code == Z_ERRNO) {
    throw TraceError(name, fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  if (code == Z_BUF_ERROR) throw TraceError(name, "the gzip data ends early");
  throw TraceError(name, fmt::format("the gzip data is damaged: {}", text));
}

// Appends up to a chunk; false at the end of the file.
bool readChunk(gzFile file, const std::string& name, std::string& content) {
  const std::size_t before = content.size();
  if (content.capacity() < before + kChunk) content.reserve(2 * before + kChunk);
  content.resize(before + kChunk);
  const int got = gzread(file, content.data() + before, static_cast<unsigned>(kChunk));
  content.resize(before + static_cast<std::size_t>(std::max(got, 0)));
  requireSound(file, name);
  return got > 0;
}

}  // namespace

std::string loadFile(const std::filesystem::path& path, std::uint64_t limit) {
  const std::string name = path.string();
  const GzReader file = openForReading(path);
  std::string content;
  content.reserve(std::min(sizeOf(path), limit) + 2 * kChunk);  // enough for all of a plain file
  while (readChunk(file.get(), name, content)) {
    if (content.size() > limit) {
      throw TraceError(name, fmt::format("is longer than {} uncompressed, the longest trace taken",
                                         formatBytes(limit)));
    }
  }
  if (content.empty()) throw TraceError(name, "is empty; expected a trace");
  return content;
}

std::string stemOf(const std::filesystem::path& path) {
  const std::filesystem::path file = path.filename();
  return (file.extension() == ".gz" ? file.stem() : file).stem().string();
}

}  // namespace cistern::trace
