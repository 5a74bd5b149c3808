// How much of a context's allocator is the device's default pool: the memory of cudaMallocAsync and
// its like. cudaMemPoolGetAttribute reports it.
//
// Stream-ordered memory lies in the heaps of its streams, and cudaMalloc's in the heap of stream 0.
// So the pool has reserved what the heaps of streams have. The memory of a per-thread default
// stream is the exception. It lies in the heap of stream 0, and counts as reserved while it is
// used.
//
//   used <= reserved      used <= used_high      reserved <= reserved_high
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/engine/engine.hpp"
#include "interop/preload/record/ledger.hpp"

namespace cistern::preload::GPU_NAMESPACE {

/// In bytes.
struct PoolBytes {
  std::uint64_t used = 0;  ///< by the program, as asked for
  std::uint64_t used_high = 0;
  std::uint64_t reserved = 0;
  std::uint64_t reserved_high = 0;
};

class PoolUse {
 public:
  explicit PoolUse(Engine& engine) noexcept : engine_(engine) {}
  PoolUse(const PoolUse&) = delete;
  PoolUse& operator=(const PoolUse&) = delete;

  /// A request was served.
  void take(std::uint64_t bytes) noexcept {
    addTo(used_, used_high_, bytes);
    if (engine_.now() != seen_.load(std::memory_order_relaxed)) [[unlikely]]
      noteGrowth();
  }
  /// The memory that take() had is freed.
  void give(std::uint64_t bytes) noexcept { takeFrom(used_, bytes); }

  /// The highest values are those since the last reset. Throws std::bad_alloc.
  PoolBytes bytesNow();
  /// The highest value is the present one.
  void resetUsedHigh() noexcept { used_high_ = used_.load(); }
  void resetReservedHigh() noexcept { reserved_high_ = 0; }
  /// Gives free memory back to the driver, until at most `bytes` are reserved, or no more is both
  /// free and complete. Pre: the context is current. Throws std::bad_alloc.
  void trimTo(std::uint64_t bytes);

 private:
  [[gnu::cold]] void noteGrowth() noexcept;
  std::vector<Heap*> heaps() const;

  Engine& engine_;
  std::atomic<std::uint64_t> used_{0}, used_high_{0}, reserved_high_{0};
  /// The engine's tick at the last look at the heaps. They take memory in misses alone, and each
  /// miss is a tick.
  std::atomic<std::uint64_t> seen_{0};
};

}  // namespace cistern::preload::GPU_NAMESPACE
