// The state that all of an allocator's memory stands on: the device, the options, how much may be
// taken, and which heap has which address. It also has the heaps, the streams, and what is counted.
// The backings (backing/, pages/) and the pools work on it. Engine (engine.hpp) is built on top.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"
#include "allocator/engine/core/heap_table.hpp"
#include "allocator/engine/events/event_pool.hpp"
#include "allocator/engine/events/known_streams.hpp"
#include "allocator/engine/ground/limit.hpp"
#include "allocator/engine/ground/memory_log.hpp"
#include "allocator/engine/ground/observer.hpp"
#include "allocator/engine/ground/segment_map.hpp"
#include "allocator/engine/statistics/totals.hpp"
#include "allocator/engine/streams/progress.hpp"
#include "cistern/device.hpp"
#include "cistern/options.hpp"

namespace cistern {

/// The segment that covers an address, and the heap that has it; null for none.
struct Located {
  HeapSegment* segment = nullptr;
  Heap* heap = nullptr;
};

/// Each member says itself whether it is thread-safe, and how.
struct Core {
  /// Makes no device call. `total`: bytes of memory that the device has; 0 for an allocator that is
  /// never used.
  Core(Device& on, const Options& how, std::uint64_t total);

  Located locate(Address address) const noexcept {
    HeapSegment* const segment = map.find(address);
    if (segment == nullptr) return {};
    return {segment, segment->heap.load(std::memory_order_acquire)};
  }
  /// The device's name, as reports give it.
  std::string deviceName() const;
  /// A verb names the stream: KnownStreams::registerStream. Throws InvalidArgument for one that the
  /// device does not know.
  void meet(Stream stream);
  /// Counts `bytes` as taken if the limit, or the host, has room for them.
  bool admit(PageKind kind, std::uint64_t bytes) {
    if (kind == PageKind::kDevice) return limit.admit(bytes);
    return bytes <= device.hostPageBytesLeft() && limitOf(kind).admit(bytes);
  }
  /// They could not be had, or have gone back.
  void noteReturned(PageKind kind, std::uint64_t bytes) { limitOf(kind).noteReturned(bytes); }
  Limit& limitOf(PageKind kind) {
    return kind == PageKind::kDevice ? limit : kind == PageKind::kHost ? host_pages : overflow;
  }
  /// What could still be taken, as far as the limit tells, or the host.
  std::uint64_t leftFor(PageKind kind) const {
    if (kind == PageKind::kDevice) return limit.left();
    const std::uint64_t left = device.hostPageBytesLeft();
    return kind == PageKind::kHost ? left : std::min(left, overflow.left());
  }
  /// The host's memory that is taken for pages.
  std::uint64_t hostPageBytes() const { return host_pages.reserved() + overflow.reserved(); }
  /// No larger request can ever be served. The device's memory says nothing of the host's. With
  /// overflow, a block may lie in both.
  std::uint64_t mostFor(const Pool& pool) const {
    if (pool.location() == Location::kHost) return kLargestHostBlock;
    const std::uint64_t beyond = pool.onPages() ? overflow.limit() : 0;
    return std::max(device_total, std::min(device_total + beyond, kLargestHostBlock));
  }
  std::uint64_t now() const { return tick.load(std::memory_order_relaxed); }

  Device& device;
  const Birthplace made;
  const Options options;
  const SizeRules rules;
  const SizeRules segment_rules;  ///< of pools whose memory comes in segments in any case
  const SizeRules whole_rules;    ///< of pools that do not split
  const std::uint64_t device_total;
  Limit limit;       ///< of the device's memory
  Limit host_pages;  ///< of the host's memory, for pools that lie there; its limit is the host's
  Limit overflow;    ///< of the host's memory, for what the device has no room for; 0: off
  OverflowCounts overflow_counts;
  std::atomic<std::uint64_t> tick{0};  ///< misses so far: the clock that segments age by
  /// The place of the next range in the order of age. Ranges are few, and their places are not
  /// given back.
  std::atomic<Address> range_places{kRangePlaces};

  /// Serialises threads that hold several heaps' locks. Taken before them.
  Mutex heaps_mutex{LockRank::kSeveralHeaps};

  Totals totals;
  std::unique_ptr<Observer> observer;  ///< null: there is none; set before the first request
  std::atomic<bool> observed{false};   ///< whether the observer is told of blocks and memory
  MemoryLog log;
  SegmentMap map;  ///< from an address to its segment, or range
  EventPool events;
  Pool default_pool;
  HeapTable heaps;
  KnownStreams streams;
  StreamProgress progress;
};

}  // namespace cistern
