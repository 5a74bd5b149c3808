// What memory must be that a device, or a program's own source, supplies. Checked in release builds
// too: a supplier is the program's code, and its mistakes would spoil the allocator's records.
#pragma once

#include <cstdint>

#include "cistern/types.hpp"

namespace cistern {

inline constexpr std::uint64_t kSuppliedAlignment = 512;
inline constexpr unsigned kSuppliedBits = 57;  ///< of address, at most

/// How the memory breaks the promise, in words that follow "which"; null when it keeps it.
constexpr const char* brokenPromise(Address address, std::uint64_t bytes) {
  constexpr Address kEnd = Address{1} << kSuppliedBits;
  if (address == 0) return "is null";
  if (address % kSuppliedAlignment != 0) return "is not a multiple of 512";
  if (address >= kEnd || bytes > kEnd - address) return "reaches beyond 2^57";
  return nullptr;
}

}  // namespace cistern
