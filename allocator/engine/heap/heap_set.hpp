// A set of heaps by their numbers, which are given in the order in which heaps are made: two levels
// of bits, so that the next one is found in a few words however many there are. Nothing but
// reserve() takes host memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cistern {

class HeapSet {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;

  /// Numbers below `count` may be inserted from now on. Throws std::bad_alloc, changing nothing
  /// that is in it.
  void reserve(std::size_t count) {
    const std::size_t words = (count + kBits - 1) / kBits;
    if (words <= bits_.size()) return;
    full_words_.resize((2 * words + kBits - 1) / kBits);
    bits_.resize(2 * words);
  }
  void insert(std::size_t number) noexcept {
    bits_[number / kBits] |= bit(number);
    full_words_[number / kBits / kBits] |= bit(number / kBits);
  }
  void erase(std::size_t number) noexcept {
    std::uint64_t& word = bits_[number / kBits];
    word &= ~bit(number);
    if (word == 0) full_words_[number / kBits / kBits] &= ~bit(number / kBits);
  }
  bool contains(std::size_t number) const noexcept {
    return (bits_[number / kBits] & bit(number)) != 0;
  }
  /// The least in it that is not less than `number`, or kNone.
  std::size_t next(std::size_t number) const noexcept {
    const std::size_t word = number / kBits;
    if (word >= bits_.size()) return kNone;
    if (const std::uint64_t here = bits_[word] & from(number)) return word * kBits + first(here);
    for (std::size_t group = (word + 1) / kBits; group < full_words_.size(); ++group) {
      const std::uint64_t at = group == (word + 1) / kBits ? from(word + 1) : ~std::uint64_t{0};
      if (const std::uint64_t words = full_words_[group] & at) {
        const std::size_t found = group * kBits + first(words);
        return found * kBits + first(bits_[found]);
      }
    }
    return kNone;
  }
  std::size_t hostBytes() const { return (bits_.capacity() + full_words_.capacity()) * 8; }

 private:
  static constexpr std::size_t kBits = 64;
  static std::uint64_t bit(std::size_t number) { return std::uint64_t{1} << (number % kBits); }
  static std::uint64_t from(std::size_t number) { return ~std::uint64_t{0} << (number % kBits); }
  static std::size_t first(std::uint64_t word) { return std::size_t(std::countr_zero(word)); }

  std::vector<std::uint64_t> bits_;
  std::vector<std::uint64_t> full_words_;  ///< bit w set  <=>  bits_[w] != 0
};

}  // namespace cistern
