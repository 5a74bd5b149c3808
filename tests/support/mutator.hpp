// Damages a file's text in a few places, the same ones every time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <string>

namespace cistern::test {

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string mutate(std::string text) {
    for (std::size_t i = 1 + below(4); i > 0; --i) mutateOnce(text);
    return text;
  }

 private:
  std::size_t below(std::size_t end) { return end == 0 ? 0 : random_() % end; }
  char byte() { return static_cast<char>(below(256)); }

  void mutateOnce(std::string& text) {
    const std::size_t at = below(text.size());
    const std::size_t length = below(std::min<std::size_t>(text.size() - at, 40) + 1);
    switch (below(7)) {
      case 0:
        flip(text, at);
        break;
      case 1:
        text.resize(at);
        break;
      case 2:
        text.insert(below(text.size()), text.substr(at, length));
        break;
      case 3:
        text.erase(at, length);
        break;
      case 4:
        text.insert(at, 1, byte());
        break;
      case 5:
        text.replace(at, length, "99999999999999999999");
        break;
      case 6:
        swap(text, at, length);
        break;
    }
  }

  void flip(std::string& text, std::size_t at) {
    if (!text.empty()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
  }

  // Moves a piece elsewhere: lines and opcodes in an order that no program writes.
  void swap(std::string& text, std::size_t at, std::size_t length) {
    const std::string piece = text.substr(at, length);
    text.erase(at, length);
    text.insert(below(text.size()), piece);
  }

  std::mt19937 random_;
};

}  // namespace cistern::test
