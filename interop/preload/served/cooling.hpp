// What cudaFree has taken back and queued work may still use.
//
// A freed block may have been used by any stream, and the next cudaMalloc may give it to any other.
// So frees are gathered, and are the allocator's again
//   - in order: when a barrier has been put into the context behind them (context_order.hpp), which
//     costs a few calls and no wait, however many they are; or
//   - complete: when events behind all work that was queued then have passed.
// The allocator asks for it when it finds no free block, before it takes more from the driver, so a
// program that finds what it needs pays for nothing here.
//
// A block that one stream was told to free (cudaFreeAsync of cudaMalloc's memory) waits for that
// stream alone, and always for completion: the program has asked for no order with the others.
//
// Thread-safe. Its lock is not held when the allocator is called.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "cistern/allocator.hpp"
#include "interop/preload/driver/driver_device.hpp"

namespace cistern::preload {

class Cooling {
 public:
  Cooling(const Functions& driver, ContextOrder& order, Captures& captures,
          const std::atomic<Reuse>& reuse)
      : driver_(driver), order_(order), captures_(captures), reuse_(reuse) {}
  Cooling(const Cooling&) = delete;
  Cooling& operator=(const Cooling&) = delete;

  /// Used by whatever is queued in the context by now.
  void add(void* block);
  /// Used by what is queued on the stream by now. Pre: the context is current. On failure it is as
  /// if add had been called.
  void addAfter(void* block, CUstream stream);

  // Pre: the context is current on the calling thread.

  /// Gives the allocator what it may have, without waiting. True if there was anything.
  bool settle(CachingAllocator& allocator);
  /// The same, after waiting for all work. True if there was anything.
  bool settleWaiting(CachingAllocator& allocator);

 private:
  struct Batch {
    std::vector<CUevent> events;  ///< all must have passed
    std::vector<void*> blocks;
  };

  std::vector<void*> orderOpen(std::vector<void*> blocks);
  std::vector<void*> fenceOpen(std::vector<void*> blocks);
  void keep(std::vector<void*> blocks);
  bool hasPassed(Batch& batch, CUresult (*ask)(CUevent));
  std::vector<void*> passedBatches(CUresult (*ask)(CUevent));
  static bool give(CachingAllocator& allocator, const std::vector<void*>& blocks);

  const Functions& driver_;
  ContextOrder& order_;
  Captures& captures_;
  const std::atomic<Reuse>& reuse_;
  std::mutex mutex_;
  std::vector<void*> open_;     // freed, with nothing put behind them yet; under mutex_, as are
  std::vector<Batch> batches_;  // those behind which events are under way
  std::atomic<bool> any_{false};
};

}  // namespace cistern::preload
