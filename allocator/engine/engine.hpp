// The state of one allocator: the device, the options, where memory comes from and where it is. It
// has the heaps, caches, streams and pools, and the blocks that wait. It also has the reports to
// the program, and the locks of a miss. The operations are functions that take the engine:
// docs/README.md lists them all.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"
#include "allocator/engine/backing/segment_backing.hpp"
#include "allocator/engine/backing/segment_map.hpp"
#include "allocator/engine/cache/cache_table.hpp"
#include "allocator/engine/heap/heap_table.hpp"
#include "allocator/engine/heap/request.hpp"
#include "allocator/engine/pages/page_backing.hpp"
#include "allocator/engine/pools/pool_table.hpp"
#include "allocator/engine/reports/hooks.hpp"
#include "allocator/engine/reports/memory_log.hpp"
#include "allocator/engine/statistics/totals.hpp"
#include "allocator/engine/streams/event_pool.hpp"
#include "allocator/engine/streams/known_streams.hpp"
#include "allocator/engine/streams/pending_frees.hpp"
#include "allocator/engine/streams/progress.hpp"
#include "cistern/device.hpp"
#include "cistern/options.hpp"

namespace cistern {

class Imports;

/// The segment that covers an address, and the heap that has it; null for none.
struct Located {
  HeapSegment* segment = nullptr;
  Heap* heap = nullptr;
};

/// Each member says itself whether it is thread-safe, and how.
struct Engine {
  /// Makes no device call. `total`: bytes of memory that the device has; 0 for an allocator that is
  /// never used.
  Engine(Device& on, const Options& how, std::uint64_t total);
  /// Gives everything back to the device, if the driver may still be called.
  ~Engine();

  /// Throws Error in a child of fork, where a lock may be one that no thread releases. For verbs.
  Engine& here(const char* verb) {
    made.requireHere(verb);
    return *this;
  }
  Located locate(Address address) const noexcept {
    HeapSegment* const segment = map.find(address);
    if (segment == nullptr) return {};
    return {segment, segment->heap.load(std::memory_order_acquire)};
  }
  /// The backing of pools that do not need the other.
  MemoryBacking& backing() const { return default_pool.backing(); }
  /// Lets memory that a graph, or an export, has held in place move again, or go.
  void unpin(Pins& pins) noexcept {
    pages.unpin(pins);
    segments.unpin(pins);
  }
  /// The device's name, as reports give it.
  std::string deviceName() const;
  /// A verb names the stream: KnownStreams::registerStream. Throws InvalidArgument for one that the
  /// device does not know.
  void meet(Stream stream);
  std::uint64_t now() const { return tick.load(std::memory_order_relaxed); }

  Device& device;
  const Birthplace made;
  const Options options;
  const SizeRules rules;
  const SizeRules segment_rules;  ///< of pools whose memory comes in segments in any case
  const SizeRules whole_rules;    ///< of pools that do not split
  const std::uint64_t device_total;
  Limit limit;
  std::atomic<std::uint64_t> tick{0};     ///< misses so far: the clock that segments age by
  std::atomic<std::uint64_t> in_hand{0};  ///< InHand's (giving_back.hpp)
  /// The place of the next range in the order of age. Ranges are few, and their places are not
  /// given back.
  std::atomic<Address> range_places{kRangePlaces};
  std::atomic<std::uint64_t> retries{0};  ///< requests that had to give memory back to go on
  std::atomic<std::uint64_t> waits{0};    ///< times the host has waited for queued work
  std::atomic<std::uint64_t> misuses{0}, out_of_memories{0};  ///< reported to the program

  /// Serialises threads that hold several heaps' locks. Taken before them.
  Mutex heaps_mutex;
  /// Serialises what gives memory back. Two threads do not undo each other, and a thread that
  /// finds nothing knows of what another was giving back.
  Mutex pressure_mutex;
  /// Serialises threads that wait for queued work, so that none gives up while another has it.
  Mutex waiting_mutex;

  Totals totals;
  MemoryLog log;
  SegmentMap map;  ///< from an address to its segment, or range
  EventPool events;
  SegmentBacking segments;
  Pool default_pool;
  HeapTable heaps;
  KnownStreams streams;
  StreamProgress progress;
  PageBacking pages;
  CacheTable caches;
  Hooks hooks;
  PendingFrees pending;
  PoolTable pools;
  const std::shared_ptr<Imports> imports;  ///< what users of imported memory hold too
};

}  // namespace cistern
