#include "interop/report/gzip.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include <zlib.h>

#include "cistern/error.hpp"

namespace cistern::report {
namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, and gzip's header
constexpr int kMemoryLevel = 9;

/// zlib's state, given back with this object.
class Deflater {
 public:
  Deflater() {
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      throw Error("there is not enough memory to pack the report");
  }
  ~Deflater() { (void)deflateEnd(&stream_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

}  // namespace

std::string gzipped(std::string_view text) {
  constexpr std::size_t kPart = 1 << 20;
  Deflater deflater;
  z_stream& stream = deflater.stream();
  std::string packed;
  std::string part(kPart, '\0');
  for (int state = Z_OK; state != Z_STREAM_END;) {
    const std::size_t taken = std::min<std::size_t>(text.size(), kPart);
    // zlib reads and never writes here; its own type lacks the const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = uInt(taken);
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = uInt(part.size());
    state = deflate(&stream, taken == text.size() ? Z_FINISH : Z_NO_FLUSH);
    text.remove_prefix(taken - stream.avail_in);
    packed.append(part, 0, part.size() - stream.avail_out);
  }
  return packed;
}

}  // namespace cistern::report
