// The heap that a cache stands in front of, and how its blocks go back there.
//
//   to the heap's layout   a cached block is allocated: heap.busyBytes() counts it
//   to the program         it is free:                  heap.busyBytes() - cached is in use
//
// All of it is called under the heap's lock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "allocator/engine/cache/ownership.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern {

class CacheHeap {
 public:
  constexpr CacheHeap() noexcept = default;
  CacheHeap(Heap& heap, const std::atomic<std::uint64_t>& tick) noexcept
      : heap_(&heap), tick_(&tick) {}

  Heap& heap() const noexcept { return *heap_; }
  /// As a report of a double free names the cache's thread.
  void setOwner(std::uint32_t thread) noexcept { owner_ = thread; }

  /// A block that the program has just freed goes back. The heap is to be asked about low water
  /// next. Pre: the block is in no bin, and nobody else can reach it.
  void letGo(Block& block, WhoFreed who) const noexcept { release(block, who, Heap::Freed::kNow); }
  /// A block that was cached goes back. `cached`: bytes that still are.
  void takeBack(Block& block, WhoFreed who, std::uint64_t cached) const noexcept {
    heap_->mutex().assertHeld();
    release(block, who, Heap::Freed::kFromCache);
    LowWater& low_water = heap_->lowWater();
    if (low_water.isDue(heap_->busyBytes() - cached)) low_water.notePassed();
  }
  /// How much the program may free before its heap is at low water; only where pages have come away
  /// from where they began, which is what low water is for.
  std::int64_t untilLowWater(std::uint64_t cached) const noexcept {
    heap_->mutex().assertHeld();
    return heap_->lowWater().until(heap_->busyBytes() - cached);
  }

 private:
  void release(Block& block, WhoFreed who, Heap::Freed how) const noexcept {
    heap_->mutex().assertHeld();
    heap_->frees().note(deviceAddress(block), block.granules, who.code(),
                        who.thread() ? who.thread() : owner_);
    ownership::leaveToHeap(block, heap_->stream());
    heap_->release(block, tick_->load(std::memory_order_relaxed), how);
  }

  Heap* heap_ = nullptr;
  const std::atomic<std::uint64_t>* tick_ = nullptr;  ///< the allocator's clock
  std::uint32_t owner_ = 0;
};

}  // namespace cistern
