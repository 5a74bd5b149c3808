#include "interop/trace/output_file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include "allocator/base/bytes.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::trace {

// zlib also writes plain files, so one path serves both.
OutputFile::OutputFile(const std::filesystem::path& path) try
    : name_(path.string()), whole_(name_) {
  const char* const mode = path.extension() == ".gz" ? "wb" : "wbT";
  file_ = gzdopen(dup(whole_.descriptor()), mode);
  if (!file_) fail(errno);
} catch (const ReplacedFile::Failure& failure) {
  throw TraceError(path.string(), refusal(failure.why));
}

OutputFile::~OutputFile() {
  if (file_) gzclose_w(file_);
}

void OutputFile::write(std::string_view text) {
  constexpr std::size_t kMost = kGiB;  // zlib counts in 32 bits
  while (!text.empty()) {
    const std::string_view part = text.substr(0, kMost);
    if (gzwrite(file_, part.data(), static_cast<unsigned>(part.size())) == 0) fail(errno);
    text.remove_prefix(part.size());
  }
}

void OutputFile::close() try {
  gzFile file = std::exchange(file_, nullptr);
  if (gzclose_w(file) != Z_OK) fail(errno);
  whole_.take();
} catch (const ReplacedFile::Failure& failure) {
  fail(failure.why);
}

std::string OutputFile::refusal(int why) {
  return fmt::format("cannot be written: {}", std::strerror(why));
}

void OutputFile::fail(int why) const { throw TraceError(name_, refusal(why)); }

}  // namespace cistern::trace
