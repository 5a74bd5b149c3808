// What a cache counts of its own, beside the heap's counters.
#pragma once

#include <cstdint>

namespace cistern {

/// Blocks, their bytes, and the bytes that the program asked for in them.
struct Tally {
  std::int64_t blocks = 0, bytes = 0, requested = 0;

  void add(std::uint64_t size, std::uint64_t asked) {
    blocks += 1;
    bytes += std::int64_t(size);
    requested += std::int64_t(asked);
  }
  void subtract(std::uint64_t size, std::uint64_t asked) {
    blocks -= 1;
    bytes -= std::int64_t(size);
    requested -= std::int64_t(asked);
  }
  /// Subtracts one such block, unless something became negative.
  bool take(std::uint64_t size, std::uint64_t asked) {
    const std::int64_t left = requested - std::int64_t(asked);
    if (blocks < 1 || bytes < std::int64_t(size) || left < 0) return false;
    blocks -= 1;
    bytes -= std::int64_t(size);
    requested = left;
    return true;
  }
  bool covers(const Tally& other) const {
    return blocks >= other.blocks && bytes >= other.bytes && requested >= other.requested;
  }
  bool isZero() const { return (blocks | bytes | requested) == 0; }
  bool negative() const { return (blocks | bytes | requested) < 0; }
  Tally negated() const { return {-blocks, -bytes, -requested}; }
  Tally half() const { return {blocks / 2, bytes / 2, requested / 2}; }
  /// Without what is negative.
  Tally orZero() const {
    return {blocks < 0 ? 0 : blocks, bytes < 0 ? 0 : bytes, requested < 0 ? 0 : requested};
  }
  Tally& operator+=(const Tally& other) {
    blocks += other.blocks, bytes += other.bytes, requested += other.requested;
    return *this;
  }
  Tally& operator-=(const Tally& other) {
    blocks -= other.blocks, bytes -= other.bytes, requested -= other.requested;
    return *this;
  }
};

}  // namespace cistern
