// The driver's stream-ordered pools that Cistern stands in for: the default one of each device,
// while the program has changed nothing of it. A pool that the program makes has properties of its
// own (who may use it, how it is shared), which Cistern's memory has not.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/engine/engine.hpp"
#include "interop/preload/driver/driver.hpp"
#include "interop/preload/record/ledger.hpp"

namespace cistern::preload::GPU_NAMESPACE {

/// Whether it is the default pool of the current context's device, which Cistern stands in for.
bool isDefaultPool(PoolHandle pool) noexcept;
/// Whether cudaMallocAsync in the current context takes from that pool.
bool defaultPoolIsCurrent() noexcept;
/// The program has set the device's current pool. From now on Cistern asks the driver which pool is
/// current: a pool that is destroyed makes the default one current again.
void currentPoolChanges(int device) noexcept;
/// The program has said which devices may use the pool. A default pool that others than its own
/// device may use is the driver's from now on.
void accessChanges(PoolHandle pool, const PoolAccess* access, std::size_t count) noexcept;
/// The device whose default pool it is; nothing for any other pool.
std::optional<int> deviceOfDefault(PoolHandle pool) noexcept;

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
