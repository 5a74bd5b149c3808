// Which allocation lies at an address, for the formats that free by pointer.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "interop/trace/hash.hpp"

namespace cistern::recording {

/// Several allocations may be live at null, where those of zero bytes lie; a free takes the latest.
class LiveAddresses {
 public:
  /// Returns the allocation that was live at `address` already, which only null may have; none if
  /// there was none. Pre: allocations come with rising numbers from 0, and each is put once.
  std::optional<std::uint64_t> put(std::uint64_t address, std::uint64_t allocation);

  /// Removes and returns the latest allocation at `address`; none if nothing is live there.
  std::optional<std::uint64_t> take(std::uint64_t address);

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  std::unordered_map<std::uint64_t, std::uint64_t, trace::SeededHash> latest_;
  std::vector<std::uint64_t> shadowed_;  // by allocation: the one live at its address before it
};

}  // namespace cistern::recording
