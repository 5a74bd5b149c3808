// The dice of one thread, or of one round.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "allocator/base/bytes.hpp"

namespace cistern::storm {

class Random {
 public:
  explicit Random(std::uint64_t seed) : source_(seed) {}

  std::uint64_t next() { return source_(); }
  /// Pre: most > 0.
  std::uint64_t below(std::uint64_t most) { return source_() % most; }
  bool oneIn(std::uint64_t n) { return below(n) == 0; }
  template <class T>
  T& oneOf(std::vector<T>& things) {
    return things[below(things.size())];
  }
  /// Bytes of a request: many small ones, and some that are large for a small device.
  std::uint64_t size() {
    const std::uint64_t dice = below(100);
    if (dice < 40) return 16 + below(64 * kKiB);
    if (dice < 60) return 16 + below(kMiB);
    if (dice < 80) return kMiB + below(4) * kMiB;
    if (dice < 96) return kMiB + below(11 * kMiB);
    return kMiB + below(47 * kMiB);
  }

 private:
  std::mt19937_64 source_;
};

}  // namespace cistern::storm
