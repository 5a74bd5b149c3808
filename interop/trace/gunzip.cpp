#include "interop/trace/gunzip.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <zlib.h>

#include "allocator/base/bytes.hpp"
#include "interop/trace/trace_error.hpp"
#include "interop/trace/trace_file.hpp"

namespace cistern::trace {
namespace {

constexpr std::size_t kStep = kMiB;
// Recorded programs unpack to four or five times what they take; a hundred is for those that repeat
// themselves to the byte.
constexpr std::uint64_t kAlwaysAllowed = 8 * kMiB;
constexpr std::uint64_t kMostTimes = 100;

constexpr int kGzipOnly = 15 + 16;  // for inflateInit2: the largest window, and a gzip header

}  // namespace

Gunzip::Gunzip(std::string name, std::optional<std::uint64_t> most)
    : name_(std::move(name)), most_(most), zip_(std::make_unique<z_stream_s>()) {
  if (inflateInit2(zip_.get(), kGzipOnly) != Z_OK) fail("cannot be unpacked: zlib did not start");
}

Gunzip::~Gunzip() { inflateEnd(zip_.get()); }

std::string_view Gunzip::take(std::string_view bytes) {
  content_.clear();
  // zlib does not write to its input, but older headers do not say so.
  zip_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  zip_->avail_in = static_cast<uInt>(bytes.size());
  taken_ += bytes.size();
  do {
    if (ended_) nextMember();
    if (!ended_) inflateSome();
    // With room left in its output zlib has nothing more to give.
  } while (zip_->avail_in > 0 || (!ended_ && zip_->avail_out == 0));
  return content_;
}

void Gunzip::inflateSome() {
  const std::size_t before = content_.size();
  content_.resize(before + kStep);
  zip_->next_out = reinterpret_cast<Bytef*>(content_.data() + before);
  zip_->avail_out = static_cast<uInt>(kStep);
  const int code = inflate(zip_.get(), Z_NO_FLUSH);
  content_.resize(before + kStep - zip_->avail_out);
  unpacked_ += content_.size() - before;
  if (code == Z_STREAM_END) {
    ended_ = true;
  } else if (code != Z_OK && code != Z_BUF_ERROR) {
    fail(fmt::format("the gzip data is damaged: {}", zip_->msg ? zip_->msg : zError(code)));
  }
  requireNoMoreThanAllowed();
}

void Gunzip::nextMember() {
  while (zip_->avail_in > 0 && *zip_->next_in == 0) {
    ++zip_->next_in;
    --zip_->avail_in;
  }
  if (zip_->avail_in == 0) return;
  if (*zip_->next_in != 0x1f) {
    throw TraceError(name_, taken_ - zip_->avail_in,
                     "expected the end of the file, found something behind the gzip data");
  }
  inflateReset(zip_.get());
  ended_ = false;
}

void Gunzip::requireNoMoreThanAllowed() const {
  const std::uint64_t packed = taken_ - zip_->avail_in;
  const std::uint64_t most = most_.value_or(std::max(kAlwaysAllowed, kMostTimes * packed));
  if (unpacked_ > kMaxFileBytes) {
    fail(fmt::format("is longer than {} uncompressed, the longest trace taken",
                     formatBytes(kMaxFileBytes)));
  }
  if (unpacked_ <= most) return;
  fail(
      fmt::format("{} of gzip data unpack to more than {}, which no recorded program does; if "
                  "this one is sound, --max-unpacked SIZE takes it",
                  formatBytes(packed), formatBytes(most)));
}

void Gunzip::finish() const {
  if (!ended_) fail("the gzip data ends early");
}

void Gunzip::fail(const std::string& what) const { throw TraceError(name_, what); }

}  // namespace cistern::trace
