#include "allocator/base/printable.hpp"

#include <cstdint>

#include <fmt/format.h>

namespace cistern {
namespace {

/// One character of UTF-8; no bytes when the text does not begin with one.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

std::size_t lengthFrom(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  if (lead >= 0xf0 && lead < 0xf5) return 4;
  return 0;
}

// Pre: `text` is not empty.
Character firstOf(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = lengthFrom(byte(0));
  if (length == 0 || length > text.size()) return {};
  std::uint32_t code = length == 1 ? byte(0) : byte(0) & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool too_long = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return too_long || surrogate || code > 0x10ffff ? Character{} : Character{code, length};
}

bool isShown(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;  // C0, DEL and C1
  if (code >= 0x200b && code <= 0x200f) return false;              // without width; directions
  if (code >= 0x2028 && code <= 0x202e) return false;              // line ends; directions
  return !(code >= 0x2066 && code <= 0x2069) && code != 0xfeff;
}

std::string shown(std::string_view text, bool lines) {
  std::string result;
  while (!text.empty()) {
    const Character c = firstOf(text);
    const std::size_t bytes = c.bytes == 0 ? 1 : c.bytes;
    if (c.bytes > 0 && (isShown(c.code) || (lines && c.code == '\n'))) {
      result += text.substr(0, bytes);
    } else {
      for (std::size_t i = 0; i < bytes; ++i) {
        result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
      }
    }
    text.remove_prefix(bytes);
  }
  return result;
}

// Those of East Asia and pictures take two; from the first of them on all are taken to.
std::size_t columnsOf(const Character& c) { return c.code >= 0x1100 && c.code != 0x2026 ? 2 : 1; }

}  // namespace

std::string printable(std::string_view text) { return shown(text, false); }

std::string printableLines(std::string_view text) { return shown(text, true); }

std::string clipped(std::string_view text, std::size_t columns) {
  if (columnsOf(text) <= columns) return std::string(text);
  std::size_t taken = 0;
  std::size_t end = 0;
  while (true) {
    const Character c = firstOf(text.substr(end));
    if (taken + columnsOf(c) + 1 > columns) return std::string(text.substr(0, end)) + "…";
    taken += columnsOf(c);
    end += c.bytes;
  }
}

std::string clippedInFront(std::string_view text, std::size_t columns) {
  std::size_t taken = columnsOf(text);
  if (taken <= columns) return std::string(text);
  while (taken + 1 > columns && !text.empty()) {
    const Character c = firstOf(text);
    taken -= columnsOf(c);
    text.remove_prefix(c.bytes == 0 ? 1 : c.bytes);
  }
  return "…" + std::string(text);
}

std::size_t columnsOf(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character c = firstOf(text);
    columns += columnsOf(c);
    text.remove_prefix(c.bytes == 0 ? 1 : c.bytes);
  }
  return columns;
}

}  // namespace cistern
