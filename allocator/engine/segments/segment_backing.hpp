// The backing `segments`: one device malloc for each segment, or one call to the source of the
// request's pool. It owns the segments that no heap has, and the last answer of the device; the
// heaps own the others. Every verb leaves everything as it was when a device call fails, and makes
// no device call under a heap's lock. Thread-safe.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/base/options.hpp"
#include "allocator/device/device.hpp"
#include "allocator/engine/heap.hpp"
#include "allocator/engine/limit.hpp"
#include "allocator/engine/recording/pins.hpp"
#include "allocator/engine/segment_map.hpp"
#include "allocator/engine/segment_records.hpp"

namespace cistern {

class SegmentBacking {
 public:
  /// `pinned`: segments that a graph may
  /// reach, which stay. `places`: where the next segment goes in the order of age. `tick`: the
  /// clock that idle segments age by.
  SegmentBacking(Device& device, const Options& options, Limit& limit, SegmentMap& map,
                 SegmentRecords& records, const PinnedSegments& pinned,
                 std::atomic<Address>& places, const std::atomic<std::uint64_t>& tick);

  /// A block for the request out of a new segment of the usual size; null when there is no room for
  /// one. Throws std::bad_alloc, and what a pool's source throws.
  Block* grow(Heap& heap, const Request& request);
  /// The same, of a segment just as large as need be; null too when that is the usual size.
  Block* growTightly(Heap& heap, const Request& request);
  /// The bytes of that.
  static std::uint64_t leastGrowth(const Request& request);

  /// Gives the heaps' idle segments back, until at least `most` bytes are. Returns the bytes.
  std::uint64_t releaseIdle(const std::vector<Heap*>& heaps, std::uint64_t most = UINT64_MAX);
  /// Gives back what has been idle for at least the mean time, oldest first, until no more than
  /// `threshold` bytes are reserved.
  void collectGarbage(const std::vector<Heap*>& heaps, std::uint64_t threshold);
  /// Gives all of the heap's back, whether in use or not: the allocator ends.
  void leave(Heap& heap) noexcept CISTERN_REQUIRES(heap.mutex());

  /// What the device said last, when it refused; else nothing.
  std::string lastError() const {
    const MutexLock lock(mutex_);
    return last_error_;
  }
  std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  std::uint64_t returned() const { return returned_.load(std::memory_order_relaxed); }

 private:
  Block* growBy(std::uint64_t bytes, Heap& heap, const Request& request);
  Result<Address> takeFromDevice(std::uint64_t bytes, const Request& request);
  Block* install(HeapSegment& segment, Heap& heap, const Request& request);
  Address nextPlace(std::uint64_t bytes);
  template <class Answer>
  void noteAnswer(const Answer& answer) noexcept;
  bool discard(HeapSegment& segment, Heap& heap);
  std::uint64_t discardRefused(Heap& heap);
  Status returnToDevice(Address base, std::uint64_t bytes, const Pool& pool) noexcept;
  bool freeOnDevice(Address base, std::uint64_t bytes, const Pool& pool);
  bool giveBack(HeapSegment& segment, Heap& owner);
  bool releaseOneIdle(HeapSegment& segment, Heap& heap);

  Device& device_;
  const Options& options_;
  Limit& limit_;
  SegmentMap& map_;
  SegmentRecords& records_;
  std::atomic<Address>& places_;
  const std::atomic<std::uint64_t>& tick_;
  const PinnedSegments& pinned_;
  mutable Mutex mutex_;
  std::string last_error_ CISTERN_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> taken_{0}, returned_{0};
};

}  // namespace cistern
