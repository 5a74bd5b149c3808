// Packs text as gzip, piece by piece: a piece is packed once, and its size is known before it is
// decided whether it goes in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cistern::report {

/// A part of a text, deflated so that any other may follow it.
struct Piece {
  std::string deflated;
  std::uint64_t bytes = 0;  ///< of the text
  std::uint32_t crc = 0;    ///< of the text
};

/// Throws Error if memory for zlib is missing.
Piece packed(std::string_view text);

/// The gzip of the pieces' texts, one after the other.
std::string gzipOf(const std::vector<Piece>& pieces);

}  // namespace cistern::report
