// The state of one allocator: its core, where its memory comes from, threads' caches, the blocks
// that wait, and pools. It also has the reports to the program, and the locks of a miss. The
// operations are functions that take the engine: docs/README.md lists them all.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "allocator/base/sections.hpp"
#include "allocator/engine/backing/segment_backing.hpp"
#include "allocator/engine/cache/cache_table.hpp"
#include "allocator/engine/core/core.hpp"
#include "allocator/engine/events/pending_frees.hpp"
#include "allocator/engine/ground/hooks.hpp"
#include "allocator/engine/pages/page_backing.hpp"

namespace cistern {

class Imports;

/// Each member says itself whether it is thread-safe, and how.
struct Engine : Core {
  /// The function for a block that has waited for other streams and is ready: putBack, in
  /// exchange/exchange.hpp.
  using PutBack = std::function<void(Engine&, const PendingFrees::Pending&)>;
  /// As Core's.
  Engine(Device& on, const Options& how, std::uint64_t total, PutBack put_back);
  /// Gives everything back to the device, if the driver may still be called.
  ~Engine();

  /// Throws Error in a child of fork, where a lock may be one that no thread releases. For verbs.
  Engine& here(const char* verb) {
    made.requireHere(verb);
    return *this;
  }

  // ---- Memory of either backing. Nothing here may be called with a heap's lock held, unless it
  // says so.

  /// The holder keeps the block's memory until letGo. For a footprint, `capture` is the number of
  /// the graph's capture; what that has held before does not count again. Pre: the block is
  /// allocated. Throws std::bad_alloc; then what was already added to the hold stays held, and
  /// nothing else.
  template <class Hold>
  void hold(const Block& block, Hold& by, std::uint32_t capture = 0) {
    isRange(segmentOf(block)) ? pages.hold(block, by, Hold::kKind, capture)
                              : segments.hold(block, by, Hold::kKind, capture);
  }
  /// The graph, or the export, is gone: its memory may move again, or go.
  template <class Hold>
  void letGo(Hold& by) noexcept {
    pages.letGo(by, Hold::kKind);
    segments.letGo(by, Hold::kKind);
  }
  /// Adds or removes one hold on all of the pool's memory, as it comes and goes.
  void hold(Pool& pool, int by) noexcept {
    const MutexLock lock(pages.mutex());
    segments.hold(pool, by);
    pool.forEachHeap([](Heap& heap) {
      const MutexLock heap_lock(heap.mutex());
      heap.offer();
    });
  }
  /// Appends the addresses of the ranges of pages that it holds. Throws std::bad_alloc.
  void addRangesOf(const HeldMemory& held, std::vector<AddressRange>& ranges) const;
  /// Whether a graph, an export or the program holds any of the block's memory. Pre: pages.mutex()
  /// and the heap's lock are held.
  bool isHeld(const Block& block) const {
    return isRange(segmentOf(block)) ? pages.isHeld(block) : segments.isHeld(block);
  }
  /// Where the block's memory lies. Pre: no heap's lock is held.
  Location locationOf(const Block& block) const {
    return isRange(segmentOf(block)) ? pages.locationOf(block) : Location::kDevice;
  }
  /// The least that a request takes from the device when nothing is free for it, in bytes.
  std::uint64_t leastGrowth(const Request& request) const {
    return roundUp(request.rounded(), request.pool->onPages() ? kPageUnit : kSegmentUnit);
  }

  Sections in_hand;                       ///< the open InHand scopes
  std::atomic<std::uint64_t> retries{0};  ///< requests that had to give memory back to go on
  std::atomic<std::uint64_t> waits{0};    ///< times the host has waited for queued work
  std::atomic<std::uint64_t> misuses{0}, out_of_memories{0};  ///< reported to the program

  /// Serialises threads that give memory back, or wait for queued work. So two threads do not undo
  /// each other, and a thread that finds nothing knows of what another has given back or waited
  /// for.
  Mutex pressure_mutex{LockRank::kPressure};

  SegmentBacking segments;
  PageBacking pages;
  CacheTable caches;
  Hooks hooks;
  PendingFrees pending;
  PoolTable pools;
  std::atomic<std::uint64_t> sleep_bytes{0};  ///< of the host: SleepMemory (sleep/) counts them
  const std::shared_ptr<Imports> imports;     ///< what users of imported memory hold too
  std::shared_ptr<void> keeper;  ///< KeepLimit (emptying/), which ends before all the rest

 private:
  void emptyCaches() noexcept;
};

/// Checks the invariants of heaps, caches, pages, the segment map and the limit; aborts on a broken
/// one.
void audit(Engine& engine);

}  // namespace cistern
