// Random numbers that are the same on every platform: integers only, and none of the standard
// library's distributions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace cistern::programs {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  /// SplitMix64.
  std::uint64_t next() {
    std::uint64_t mixed = state_ += 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
  }

  /// From `least` to `most`, each as likely. Pre: least <= most < 2^64 - 1.
  std::uint64_t between(std::uint64_t least, std::uint64_t most) {
    return least + next() % (most - least + 1);
  }

  /// The exponent of the largest power of two that is no more than `value`. Pre: value > 0.
  static std::uint64_t octaveOf(std::uint64_t value) {
    return std::uint64_t(std::bit_width(value)) - 1;
  }

  /// The same, but each doubling is as likely. Pre: 0 < least <= most < 2^63.
  std::uint64_t logBetween(std::uint64_t least, std::uint64_t most) {
    while (true) {
      const std::uint64_t octave = std::uint64_t{1} << between(octaveOf(least), octaveOf(most));
      const std::uint64_t value = between(octave, 2 * octave - 1);
      if (value >= least && value <= most) return value;
    }
  }

  bool chance(unsigned percent) { return next() % 100 < percent; }

  template <std::size_t Count>
  std::uint64_t pick(const std::uint64_t (&values)[Count]) {
    return values[next() % Count];
  }

 private:
  std::uint64_t state_;
};

}  // namespace cistern::programs
