#include "allocator/base/printable.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "allocator/base/utf8.hpp"

namespace cistern {
namespace {

bool isShown(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;  // C0, DEL and C1
  if (code >= 0x200b && code <= 0x200f) return false;              // without width; directions
  if (code >= 0x2028 && code <= 0x202e) return false;              // line ends; directions
  return !(code >= 0x2066 && code <= 0x2069) && code != 0xfeff;
}

std::string shown(std::string_view text, bool lines) {
  std::string result;
  while (!text.empty()) {
    const Character c = firstCharacter(text);
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
    const Character c = firstCharacter(text.substr(end));
    if (taken + columnsOf(c) + 1 > columns) return std::string(text.substr(0, end)) + "…";
    taken += columnsOf(c);
    end += c.bytes;
  }
}

std::string clippedInFront(std::string_view text, std::size_t columns) {
  std::size_t taken = columnsOf(text);
  if (taken <= columns) return std::string(text);
  while (taken + 1 > columns && !text.empty()) {
    const Character c = firstCharacter(text);
    taken -= columnsOf(c);
    text.remove_prefix(c.bytes == 0 ? 1 : c.bytes);
  }
  return "…" + std::string(text);
}

std::size_t columnsOf(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character c = firstCharacter(text);
    columns += columnsOf(c);
    text.remove_prefix(c.bytes == 0 ? 1 : c.bytes);
  }
  return columns;
}

}  // namespace cistern
