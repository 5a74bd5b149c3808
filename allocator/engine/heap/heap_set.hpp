// A set of heaps by their numbers, which are given in the order in which heaps are made: a bit for
// each. The next one is found 64 numbers at a time: 100,000 heaps are 1,563 words.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cistern {

class HeapSet {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;

  /// Numbers below `count` may be inserted from now on; nothing else takes host memory. Throws
  /// std::bad_alloc, changing nothing that is in it.
  void reserve(std::size_t count) {
    const std::size_t words = (count + kBits - 1) / kBits;
    if (words > words_.size()) words_.resize(2 * words);
  }
  void insert(std::size_t number) noexcept { words_[number / kBits] |= bit(number); }
  void erase(std::size_t number) noexcept { words_[number / kBits] &= ~bit(number); }
  bool contains(std::size_t number) const noexcept {
    return (words_[number / kBits] & bit(number)) != 0;
  }
  /// The least in it that is not less than `number`, or kNone.
  std::size_t next(std::size_t number) const noexcept {
    std::uint64_t from = ~std::uint64_t{0} << (number % kBits);
    for (std::size_t i = number / kBits; i < words_.size(); ++i) {
      if (const std::uint64_t found = words_[i] & from)
        return i * kBits + std::size_t(std::countr_zero(found));
      from = ~std::uint64_t{0};
    }
    return kNone;
  }
  std::size_t hostBytes() const { return words_.capacity() * sizeof(words_[0]); }

 private:
  static constexpr std::size_t kBits = 64;
  static std::uint64_t bit(std::size_t number) { return std::uint64_t{1} << (number % kBits); }

  std::vector<std::uint64_t> words_;
};

}  // namespace cistern
