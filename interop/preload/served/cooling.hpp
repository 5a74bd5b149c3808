// Memory that cudaFree has taken back and that submitted work may still use, when no cut keeps the
// uses apart (context_order.hpp). This happens while a graph is captured, when work may be
// submitted unseen, and when memory is reused only after its work is complete. Such frees are
// gathered. They go back to the allocator
//   - in order: when the capture is over, or a barrier has been put behind them. A barrier costs a
//     few calls and no wait, however many frees there are. Or
//   - complete: when events behind all work that was submitted then have passed. If no work was
//     submitted since the last events, those are used. If they have passed, the memory goes back at
//     once.
// The allocator asks for these frees when it finds no free block, before it takes more from the
// driver. So a program that finds free blocks pays nothing here.
//
// A block that was freed on one stream (cudaFreeAsync of cudaMalloc's memory) waits for that stream
// alone, and always for completion. The program has asked for no order with other streams.
//
// Thread-safe. The lock of its lists is not held when the allocator is called.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "cistern/allocator.hpp"
#include "interop/preload/driver/driver_device.hpp"

namespace cistern::preload::GPU_NAMESPACE {

struct Cooled {
  void* pointer = nullptr;
  bool of_stream = false;  ///< a cudaMallocAsync's: it goes back to its stream
};

class Cooling {
 public:
  Cooling(const Functions& driver, ContextOrder& order, Captures& captures,
          const std::atomic<Reuse>& reuse)
      : driver_(driver), order_(order), captures_(captures), reuse_(reuse) {}
  Cooling(const Cooling&) = delete;
  Cooling& operator=(const Cooling&) = delete;

  /// Used by all work that is queued in the context by now.
  void add(const Cooled& block);
  /// Used by the work that is queued on the stream by now. Pre: the context is current. On failure
  /// it is as if add had been called.
  void addAfter(const Cooled& block, StreamHandle stream);

  /// A block that a cut, or a wait, lies behind is the allocator's again.
  void give(CachingAllocator& allocator, const Cooled& block) noexcept;

  // Pre: the context is current on the calling thread.

  /// Gives the allocator the memory that it may have, without waiting. True if there was anything.
  bool settle(CachingAllocator& allocator);
  /// The same, after waiting for all work, and for other threads that are at it.
  void settleWaiting(CachingAllocator& allocator);
  /// All work has been waited for of which there was so much: see ContextOrder::workSoFar.
  void waited(std::uint64_t work) noexcept;
  /// Blocks that these two have given so far.
  std::uint64_t given() const noexcept { return given_.load(); }

 private:
  using Ask = Code (Functions::*)(EventHandle) const;
  struct Batch {
    std::vector<EventHandle> events;  ///< all must have passed
    std::vector<Cooled> blocks;
    std::optional<std::uint64_t>
        work{};  ///< submitted before them; nothing where that is not known
  };

  bool settleAlone(CachingAllocator& allocator);
  std::vector<Cooled> orderOpen(std::vector<Cooled> blocks);
  std::vector<Cooled> fenceOpen(std::vector<Cooled> blocks);
  void keep(std::vector<Cooled> blocks);
  bool join(std::uint64_t work, const std::vector<Cooled>& blocks);
  bool hasPassed(Batch& batch, Ask ask);
  std::vector<Cooled> passedBatches(Ask ask);
  bool giveAll(CachingAllocator& allocator, const std::vector<Cooled>& blocks) noexcept;

  const Functions& driver_;
  ContextOrder& order_;
  Captures& captures_;
  const std::atomic<Reuse>& reuse_;
  Mutex settling_{LockRank::kCoolingSettling};  // held until what was found is the allocator's
  Mutex mutex_{LockRank::kCooling};
  std::vector<Cooled> open_;    // freed, with nothing put behind them yet; under mutex_, as are
  std::vector<Batch> batches_;  // those behind which events are under way
  std::atomic<std::uint64_t> complete_{0};  ///< all work is, of which there was so much
  std::atomic<bool> any_{false};
  std::atomic<std::uint64_t> given_{0};
};

}  // namespace cistern::preload::GPU_NAMESPACE
