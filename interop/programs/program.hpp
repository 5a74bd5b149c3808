// A program while it is made up: what it allocates and frees, and when. Read next: generate.hpp.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "interop/recording/recording_builder.hpp"

namespace cistern::programs {

// Random numbers that are the same on every platform: integers only, and none of the standard
// library's distributions.

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

/// An allocation, by its number.
using Block = std::uint64_t;
using Blocks = std::vector<Block>;

// Bytes of a number.
inline constexpr std::uint64_t kHalf = 2, kFloat = 4, kIndex = 8;

/// Says of an event that cannot be that the generator is wrong.
class GeneratorSite final : public trace::ErrorSite {
 public:
  [[noreturn]] void fail(const std::string& what) const override;
};

class Program {
 public:
  /// `host_us`: what the program does between two events, in the middle.
  Program(Random& random, std::uint64_t host_us) : random_(random), host_us_(host_us) {}

  Block take(std::uint64_t bytes, int stream = 0);
  void drop(Block block);
  /// In the order in which they were added; leaves none.
  void drop(Blocks& blocks);
  /// A variable of the program gets new tensors; those that it held until now are dropped.
  void assign(Blocks& variable, Blocks fresh);
  /// An operation's scratch memory: taken and dropped.
  void scratch(std::uint64_t bytes, int stream = 0) { drop(take(bytes, stream)); }
  /// The program waits, as for the end of a step.
  void pass(std::uint64_t us) { owed_us_ += us; }

  std::uint64_t events() const { return events_; }
  recording::Recording finish(const std::string& name);

 private:
  void elapse();

  Random& random_;
  const std::uint64_t host_us_;
  std::uint64_t owed_us_ = 0;
  std::uint64_t events_ = 0;
  GeneratorSite site_;
  recording::RecordingBuilder builder_{site_, trace::Detail::kCalls};
};

}  // namespace cistern::programs
