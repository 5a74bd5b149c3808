// What a miss tries, one step after another, before it is an OutOfMemory. Each step looks for
// memory a little further away; the first block found ends it. The steps stand in one table in
// fallbacks.cpp. It owns the locks that serialise those who make room and those who wait.
//
// Thread-safe. Nothing here runs under a heap's lock.
#pragma once

#include <span>

#include "allocator/engine/giving_back.hpp"
#include "allocator/engine/pools/pool_table.hpp"
#include "allocator/engine/statistics/accounting.hpp"

namespace cistern {

class Fallbacks {
 public:
  Fallbacks(Core& core, Flusher& flusher, CrossStream& cross_stream, PoolTable& pools,
            GivingBack& giving_back, const Accounting& accounting)
      : core_(core),
        flusher_(flusher),
        cross_stream_(cross_stream),
        pools_(pools),
        giving_back_(giving_back),
        accounting_(accounting) {}

  /// A block for a request that the heap's free memory does not serve. A request of a capture takes
  /// the steps that neither wait nor give anything back. Throws OutOfMemory, nothing having changed
  /// apart from cached memory given back; std::bad_alloc; what a callback or a pool's source
  /// throws.
  Block& serve(Heap& heap, const Request& request);
  [[noreturn]] void throwOutOfMemory(const Request& request);

 private:
  using Take = Block* (Fallbacks::*)(Heap& heap, const Request& request);
  struct Step {
    const char* name;
    Take take;
  };
  static const Step kSteps[], kStepsOfCapture[];

  Block* tryAll(std::span<const Step> steps, Heap& heap, const Request& request);
  static Block* search(Heap& heap, const Request& request);
  Block* fromCapture(Heap& heap, const Request& request);
  Block* afterEvents(Heap& heap, const Request& request);
  Block* afterCallbacks(Heap& heap, const Request& request);
  Block* afterGarbageCollection(Heap& heap, const Request& request);
  Block* moreMemory(Heap& heap, const Request& request);
  Block* morePages(Heap& heap, const Request& request);
  Block* moreSegments(Heap& heap, const Request& request);
  Block* growTightly(Heap& heap, const Request& request);
  Block* partsOfOthers(Heap& heap, const Request& request);
  Block* completePartsOfOthers(Heap& heap, const Request& request);
  Block* afterMakingRoom(Heap& heap, const Request& request);
  Block* afterGivingSegmentsBack(Heap& heap, const Request& request);
  Block* fromLenders(Heap& heap, const Request& request);
  Block* afterPending(Heap& heap, const Request& request);
  Block* afterPools(Heap& heap, const Request& request);
  Block* afterTheDevice(Heap& heap, const Request& request);
  bool waitForPools();
  void auditAtTick() const;

  Core& core_;
  Flusher& flusher_;
  CrossStream& cross_stream_;
  PoolTable& pools_;
  GivingBack& giving_back_;
  const Accounting& accounting_;
  /// Serialises what gives memory back to make room, so that two threads do not undo each other.
  Mutex pressure_mutex_;
  /// Serialises those who wait for queued work, so that none gives up while another has it.
  Mutex waiting_mutex_;
};

}  // namespace cistern
