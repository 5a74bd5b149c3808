// Device memory that comes and goes, as a program hears of it that registers memory with other
// libraries (ibv_reg_mr, UCX, NCCL): CachingAllocator::attachMemoryHook.
#pragma once

#include <cstdint>
#include <functional>

#include "cistern/types.hpp"

namespace cistern {

enum class MemoryChange : std::uint8_t {
  kMapped,     ///< the addresses have memory behind them now
  kUnmapping,  ///< they are about to lose it; nothing can be allocated there any more
};

/// A change to one range of addresses: a page, a segment, or pages of another process. The range
/// that is unmapping is one that was mapped, as a whole.
struct MemoryNotice {
  std::uint64_t number = 0;  ///< of those that this hook is called with: 1, 2, 3, …
  MemoryChange change{};
  Address address = 0;
  std::uint64_t bytes = 0;
  Stream stream;                          ///< whose blocks were to lie there, as it was mapped
  MempoolId_t pool;                       ///< whose blocks were to lie there, as it was mapped
  Location location = Location::kDevice;  ///< of the memory
  bool imported = false;                  ///< another process has the memory, too (openImport)
  /// It is no news: the memory was there when this hook was attached.
  bool was_there = false;
};

using MemoryHook = std::function<void(const MemoryNotice&)>;

}  // namespace cistern
