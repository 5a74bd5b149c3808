#include "interop/report/gzip.hpp"

#include <algorithm>

#include <zlib.h>

#include "cistern/error.hpp"

namespace cistern::report {
namespace {

constexpr int kRawWindow = -15;  // the largest window, and no header
constexpr int kMemoryLevel = 9;

/// zlib's state, given back with this object.
class Deflater {
 public:
  Deflater() {
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kRawWindow, kMemoryLevel,
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

void addLittleEndian(std::string& to, std::uint32_t value) {
  for (int byte = 0; byte < 4; ++byte) to += char(value >> (8 * byte) & 0xff);
}

}  // namespace

// A full flush ends a piece at a byte, without the mark of the last block.
Piece packed(std::string_view text) {
  constexpr std::size_t kPart = 1 << 20;
  Deflater deflater;
  z_stream& stream = deflater.stream();
  Piece piece{{}, text.size(), std::uint32_t(crc32(0, nullptr, 0))};
  std::string part(std::min(kPart, text.size() + 64), '\0');
  for (bool all = false; !all;) {
    const std::size_t taken = std::min(text.size(), kPart);
    // zlib reads and never writes here; its own type lacks the const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = uInt(taken);
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = uInt(part.size());
    (void)deflate(&stream, taken == text.size() ? Z_FULL_FLUSH : Z_NO_FLUSH);
    const std::size_t read = taken - stream.avail_in;
    piece.crc =
        std::uint32_t(crc32(piece.crc, reinterpret_cast<const Bytef*>(text.data()), uInt(read)));
    text.remove_prefix(read);
    piece.deflated.append(part, 0, part.size() - stream.avail_out);
    all = text.empty() && stream.avail_out > 0;
  }
  return piece;
}

std::string gzipOf(const std::vector<Piece>& pieces) {
  constexpr std::string_view kHeader{"\x1f\x8b\x08\0\0\0\0\0\0\x03", 10};  // no name and no time
  constexpr std::string_view kLastBlock{"\x03\0", 2};                      // an empty one
  std::string whole(kHeader);
  uLong crc = crc32(0, nullptr, 0);
  std::uint64_t bytes = 0;
  for (const Piece& piece : pieces) {
    whole += piece.deflated;
    crc = crc32_combine(crc, piece.crc, z_off_t(piece.bytes));
    bytes += piece.bytes;
  }
  whole += kLastBlock;
  addLittleEndian(whole, std::uint32_t(crc));
  addLittleEndian(whole, std::uint32_t(bytes));
  return whole;
}

}  // namespace cistern::report
