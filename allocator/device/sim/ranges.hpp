// Hands out ranges of addresses, lowest first. Under the simulated device's lock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "cistern/types.hpp"

namespace cistern::sim {

/// Invariants: free ranges are disjoint, not adjacent, and lie in [begin, end).
class Ranges {
 public:
  Ranges(Address begin, Address end);

  /// The lowest free range of that size and alignment. Pre: bytes > 0.
  std::optional<Address> take(std::uint64_t bytes, std::uint64_t alignment);
  /// Pre: a range that take returned, whole.
  void give(Address address, std::uint64_t bytes);

  std::uint64_t freeBytes() const;
  void audit() const;

 private:
  Address begin_;
  Address end_;
  std::map<Address, std::uint64_t> free_;  ///< address -> bytes
};

}  // namespace cistern::sim
