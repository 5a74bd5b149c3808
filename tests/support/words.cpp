#include "tests/support/words.hpp"

namespace cistern::test {

void makeWords(std::span<std::uint32_t> words, std::uint32_t seed) {
  for (std::uint32_t& word : words) word = seed++;
}

std::uint64_t wrongWords(std::span<const std::uint32_t> words, std::uint32_t seed) {
  std::uint64_t wrong = 0;
  for (const std::uint32_t word : words) wrong += word != seed++;
  return wrong;
}

}  // namespace cistern::test
