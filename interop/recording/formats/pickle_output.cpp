#include "interop/recording/formats/pickle_output.hpp"

namespace cistern::recording {

void PickleOutput::little(std::uint64_t value, std::size_t width) {
  char bytes[8];
  for (std::size_t i = 0; i < width; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  out_.add({bytes, width});
}

void PickleOutput::number(std::uint64_t value) {
  if (value < 0x100) {
    out_.add("K");
    little(value, 1);
  } else if (value < 0x10000) {
    out_.add("M");
    little(value, 2);
  } else if (value < 0x8000'0000) {
    out_.add("J");
    little(value, 4);
  } else {
    const bool wide = value >> 63 != 0;  // a ninth byte keeps it from being negative
    out_.add(wide ? "\x8a\x09" : "\x8a\x08");
    little(value, 8);
    if (wide) little(0, 1);
  }
}

void PickleOutput::text(std::string_view text) {
  const auto known = texts_.find(text);
  if (known != texts_.end()) return recall(known->second);
  if (text.size() < 0x100) {
    out_.add("\x8c");
    little(text.size(), 1);
  } else {
    out_.add("X");
    little(text.size(), 4);
  }
  out_.add(text);
  texts_.emplace(text, remember());
}

std::uint32_t PickleOutput::remember() {
  out_.add("\x94");
  return remembered_++;
}

void PickleOutput::recall(std::uint32_t number) {
  if (number < 0x100) {
    out_.add("h");
    little(number, 1);
  } else {
    out_.add("j");
    little(number, 4);
  }
}

}  // namespace cistern::recording
