// A heap: the segments and the free blocks of one stream in one pool, behind one lock.
//
// A block freed on the heap's stream may be handed out again on that stream at once: the stream's
// own order makes it safe. To hand it to anyone else, the work queued at its free must be complete.
// For that a heap counts epochs: every free is stamped with the current epoch, and when someone
// else would like this heap's memory an event is recorded on the stream and the epoch ends. Once
// that event is complete, every free block stamped with that epoch or an earlier one is safe for
// all. Several such events may be under way: what is freed between two of them is safe when the
// second is complete, and not only when all is that the stream had queued by the next look.
//
//   marks[0].epoch <= marks[1].epoch <= … < epoch,  completed < epoch
//
// Locks: everything in a heap is guarded by its mutex; no device call is ever made under it.
// Read first: layout.hpp, statistics.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "allocator/base/ablation.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/base/sabotage.hpp"
#include "allocator/engine/cache/ownership.hpp"
#include "allocator/engine/event_pool.hpp"
#include "allocator/engine/free_log.hpp"
#include "allocator/engine/low_water.hpp"
#include "allocator/engine/offering_heaps.hpp"
#include "allocator/engine/pool.hpp"
#include "allocator/engine/recent_frees.hpp"
#include "allocator/engine/request.hpp"
#include "allocator/engine/statistics.hpp"
#include "allocator/engine/statistics/totals.hpp"
#include "allocator/engine/stream_uses.hpp"
#include "allocator/layout/layout.hpp"

namespace cistern {

class Heap;
class ThreadCache;

/// A segment with the heap that owns it. Records are recycled, never deleted before the allocator.
///
/// The layout knows a segment by its place in the order of age (Segment::base), not by where it is
/// on the device: which segment is preferred is the allocator's choice then, and the same on every
/// device, whatever addresses its driver hands out.
/// One cache line: a free looks into it first, and at a million blocks it is seldom in the cache.
struct alignas(64) HeapSegment : Segment {
  Address device_base = 0;  ///< where it is
  /// Changes only while the segment is wholly free. Who may have no block in it acquires what
  /// Heap::add released; heaps live as long as the allocator.
  std::atomic<Heap*> heap{nullptr};
  SizeKind kind = SizeKind::kSmall;  ///< read without a lock by whoever holds a block in it

  /// The allocator's tick when it last became wholly free; seven bytes of it, so that `kind` has
  /// the eighth and is not written with it.
  std::uint64_t idleSince() const {
    std::uint64_t tick = 0;
    std::memcpy(&tick, idle_since_.data(), idle_since_.size());
    return tick;
  }
  void setIdleSince(std::uint64_t tick) {
    std::memcpy(idle_since_.data(), &tick, idle_since_.size());
  }

  Address deviceEnd() const { return device_base + bytes; }
  bool covers(Address address) const { return address - device_base < bytes; }
  Address onDevice(Address place) const { return device_base + (place - base); }
  Address placeOf(Address address) const { return base + (address - device_base); }

 private:
  std::array<std::uint8_t, 7> idle_since_{};
};

static_assert(sizeof(HeapSegment) == 64);

inline HeapSegment& segmentOf(const Block& block) {
  return static_cast<HeapSegment&>(*block.segment);
}

/// Where a block is on the device.
inline Address deviceAddress(const Block& block) {
  return segmentOf(block).onDevice(block.address());
}

/// An epoch of one heap, as something outside of its blocks remembers it: epochs are renumbered
/// when they run out, and then count from `generation` anew.
struct EpochMark {
  std::uint32_t epoch = 0;
  std::uint32_t generation = 0;
};

/// The epochs that a free block may be stamped with to be taken.
struct Epochs {
  std::uint32_t first = 0, last = UINT32_MAX;
  static Epochs upTo(std::uint32_t last) { return {0, last}; }
  static Epochs none() { return {1, 0}; }
  bool contain(std::uint32_t epoch) const { return first <= epoch && epoch <= last; }
};

/// The streams beside its own that a block in use is used on, whoever looks after it; null for
/// none.
inline StreamUses* usesOf(const Block& block) {
  return ownership::isOwned(ownership::load(block)) ? nullptr
                                                    : static_cast<StreamUses*>(block.use.uses);
}

/// The size of the largest free block, in bytes.
inline std::uint64_t largestFree(const FreeIndex& index) {
  const Block* largest = index.largest();
  return largest ? largest->bytes() : 0;
}

/// Its lock is on a line of its own: threads on other streams have other heaps.
class alignas(64) Heap {
 public:
  Heap(Pool& pool, Stream stream, std::size_t free_log, Totals& totals)
      : totals_(totals),
        pool_(&pool),
        stream_(stream),
        on_pages_(pool.onPages()),
        small_(pool.rules().splitRules(SizeKind::kSmall)),
        large_(pool.rules().splitRules(SizeKind::kLarge)),
        frees(free_log) {}

  /// Neither changes while the heap holds memory, or some of it is on its way to the device. Anyone
  /// may ask at any time: the answer may be outdated a moment later, and who acts on it asks again
  /// under the lock. But the pool is one that can be looked at: its record was whole before it was
  /// released to here, and lives as long as the allocator.
  Stream stream() const { return stream_.load(std::memory_order_relaxed); }
  Pool& pool() const { return *pool_.load(std::memory_order_acquire); }
  /// Whether the stream has been forgotten (known_streams.hpp, which sets it): it is not asked, and
  /// look-ups for requests pass over the heap.
  bool gone() const { return gone_.load(std::memory_order_acquire); }
  void setGone(bool gone) { gone_.store(gone, std::memory_order_release); }
  /// Whether requests of that stream are for this heap, which had it a moment ago. Asked in this
  /// order: by the time it is not gone any more, it is another stream's.
  bool serves(Stream s) const { return !gone() && stream() == s; }
  /// Whether its memory is pages, rather than segments.
  bool onPages() const { return on_pages_; }
  Mutex& mutex() const CISTERN_TSA(lock_returned(mutex_)) { return mutex_; }
  /// So many heaps were made before it.
  std::size_t number() const { return offering.number; }

  /// The stream that a block in use was allocated for.
  Stream streamOf(const Block& block) const {
    return ownership::isOwned(ownership::load(block)) ? stream() : block.use.stream;
  }

  Layout& layout(SizeKind kind) CISTERN_REQUIRES(mutex_) {
    return kind == SizeKind::kSmall ? small_ : large_;
  }

  /// Whether the segment is this heap's and covers the device address.
  bool owns(const HeapSegment& segment, Address address) const CISTERN_REQUIRES(mutex_) {
    return segment.heap.load(std::memory_order_relaxed) == this && segment.covers(address);
  }
  /// The block that the program has at a device address, for which `segment` was looked up; or
  /// null. `seen`: what peek() said, or null.
  Block* find(const HeapSegment& segment, Address address, Block* seen = nullptr)
      CISTERN_REQUIRES(mutex_) {
    if (!owns(segment, address)) return nullptr;
    const Address place = segment.placeOf(address);
    const bool still = seen && seen->segment == &segment && seen->address() == place &&
                       seen->state() == BlockState::kAllocated;
    Block* const block = still ? seen : layout(segment.kind).find(place);
    return block && ownership::heldByProgram(*block) ? block : nullptr;
  }
  /// The same without the lock, for whoever has the block; null, seldom, although it is there. In
  /// the hands of somebody who has not, what it returns may be anything. No analysis: it is made to
  /// be called without the lock.
  Block* peek(const HeapSegment& segment, Address address) const noexcept CISTERN_NO_TSA {
    const Layout& from = segment.kind == SizeKind::kSmall ? small_ : large_;
    return from.peek(segment.placeOf(address));
  }

  /// A block for the request out of this heap's free memory, or null. Counts it.
  Block* allocate(const Request& request) CISTERN_REQUIRES(mutex_);
  /// The same out of one free block of this heap, for a request of any stream.
  Block* allocateFrom(Block& free, const Request& request) CISTERN_REQUIRES(mutex_);
  /// The same at one place in it: [at, at + request.rounded()) lies in the free block.
  Block* allocateAt(Block& free, Address at, const Request& request) CISTERN_REQUIRES(mutex_);
  /// Puts a block that the program held, or a pending one, back among the free.
  void release(Block& block, std::uint64_t tick) noexcept CISTERN_REQUIRES(mutex_) {
    release(block, tick, epoch, true);
  }
  /// The same of one whose last use is complete, so that it is any stream's to take.
  void releaseComplete(Block& block, std::uint64_t tick) noexcept CISTERN_REQUIRES(mutex_) {
    release(block, tick, completion.completed, true);
  }
  /// The same of one that a thread's cache has kept: the program has let go of it before.
  void releaseCached(Block& block, std::uint64_t tick) noexcept CISTERN_REQUIRES(mutex_) {
    release(block, tick, epoch, false);
  }
  /// Free blocks whose last use is not known to be complete. Throws std::bad_alloc.
  std::vector<Block*> incomplete() CISTERN_REQUIRES(mutex_);
  /// All that lies free is complete; what has left free memory behind may not be.
  void noteFreeComplete() noexcept CISTERN_REQUIRES(mutex_);
  /// Makes a whole free block a pending one that the program never had.
  void setAside(Block& free) noexcept CISTERN_REQUIRES(mutex_);
  /// Hands a pending block out again, whole.
  void reissue(Block& block, const Request& request) noexcept CISTERN_REQUIRES(mutex_);
  /// The program has freed the block, but work of other streams still uses it: which those are.
  StreamUses setPending(Block& block) noexcept CISTERN_REQUIRES(mutex_);

  /// Where a segment comes from: the device, so that no queued work uses it; another heap; or from
  /// here, and the device has refused to take it back.
  enum class From : std::uint8_t { kDevice, kOtherHeap, kRefused };
  /// Takes a wholly free segment in. Throws std::bad_alloc, changing nothing.
  void add(HeapSegment& segment, From from) CISTERN_REQUIRES(mutex_);
  /// Lets one go, to the device, or (`returned` is false) to another heap.
  void remove(HeapSegment& segment, bool returned) noexcept CISTERN_REQUIRES(mutex_);

  /// Memory of a range comes, as free memory that was last used in `epoch`, or goes. The counts of
  /// reserved bytes are countBacking's.
  Block* fill(SizeKind kind, Block& hole, Address from, Address to, std::uint32_t at) noexcept
      CISTERN_REQUIRES(mutex_);
  Block* punch(SizeKind kind, Block& free, Address from, Address to) noexcept
      CISTERN_REQUIRES(mutex_);
  /// `bytes` of memory are this heap's from now on, or (sign -1) no more. `real`: they come from
  /// the device or go there, and not to another heap.
  void countBacking(SizeKind kind, std::uint64_t bytes, int sign, bool real)
      CISTERN_REQUIRES(mutex_);

  /// The present epoch.
  EpochMark markNow() const CISTERN_REQUIRES(mutex_) { return {epoch, generation}; }
  /// Ends the present epoch; it was that.
  EpochMark endedEpoch() CISTERN_REQUIRES(mutex_) {
    const EpochMark now = markNow();
    const std::uint32_t before = generation;
    (void)endEpoch();
    return before == generation ? now : EpochMark{kOldEpochs, generation};
  }
  /// Whether all that was freed in that epoch or before is complete.
  bool complete(EpochMark mark) const CISTERN_REQUIRES(mutex_) {
    const std::uint32_t now = mark.generation == generation ? mark.epoch : kOldEpochs;
    return now <= completion.completed || broken(Rule::kCompletion);
  }
  /// All that was freed in that epoch, which has ended, or before is complete.
  void noteComplete(EpochMark mark) CISTERN_REQUIRES(mutex_);
  /// Makes it the heap of another stream and pool with the same backing. False when it is being
  /// asked about at the moment, or holds memory, or some of its memory is on its way to the device.
  /// Pre: what it held is complete.
  bool moveTo(Pool& pool, Stream stream) noexcept CISTERN_EXCLUDES(mutex_);
  /// Ends the current epoch and returns its number: no free block is stamped with a later one.
  std::uint32_t endEpoch() noexcept CISTERN_REQUIRES(mutex_);

  std::uint64_t busyBytes() const CISTERN_REQUIRES(mutex_) {
    return small_.busyBytes() + large_.busyBytes();
  }
  /// Whether hardly any of its memory is in use, or a thread's.
  bool nearlyFree() CISTERN_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return busyBytes() < (small_.segmentBytes() + large_.segmentBytes()) / 8;
  }
  /// Of one kind of sizes, what it has of each statistic. Pre: its caches are held still. Walks all
  /// blocks.
  StatArray usage(SizeKind kind) CISTERN_REQUIRES(mutex_);
  std::uint64_t reservedBytes() const CISTERN_REQUIRES(mutex_) {
    return backing_[0].bytes + backing_[1].bytes;
  }
  /// Memory that the heap has of one kind is of another, in whichever heap.
  void countMoved(SizeKind from, SizeKind to, std::uint64_t bytes) noexcept {
    totals_.moveBacking(from, to, bytes);
  }
  std::size_t hostBytes() CISTERN_REQUIRES(mutex_);
  void audit() CISTERN_REQUIRES(mutex_);

  // ---- What it has for others (offering_heaps.hpp) ---------------------------------------------

  /// Whether it may have pages, or a segment, for other heaps.
  bool offers() const noexcept CISTERN_REQUIRES(mutex_);
  /// It has none: nobody looks here until memory becomes free, or comes. Pre: so it is, but for
  /// what lies aside and what the index has left out, which this looks at.
  void withdraw() noexcept CISTERN_REQUIRES(mutex_);
  /// Nobody looks here.
  bool withdrawn() const CISTERN_REQUIRES(mutex_) { return withdrawn_; }

 private:
  void release(Block& block, std::uint64_t tick, std::uint32_t at, bool held) noexcept
      CISTERN_REQUIRES(mutex_);
  void noteFreed(const Block& block, std::uint32_t at) noexcept CISTERN_REQUIRES(mutex_);
  // A block in use remembers in `epoch` which capture it was allocated in.
  void begin(Block& block, const Request& request) CISTERN_REQUIRES(mutex_) {
    block.use = ownership::heapsOwn(request.bytes, request.stream);
    block.epoch = request.recorded_by;
    count(request.kind, Counts::block(block.bytes(), request.bytes, +1));
  }
  /// Counts an operation: what it has changed of what the program holds, and of what lies free.
  void count(SizeKind kind, const Counts& held) noexcept CISTERN_REQUIRES(mutex_);
  void offerAgain() noexcept CISTERN_REQUIRES(mutex_);
  void auditCounts(SizeKind kind) CISTERN_REQUIRES(mutex_);
  void renumberEpochs() noexcept CISTERN_REQUIRES(mutex_);

  struct Split {
    std::int64_t blocks = 0, bytes = 0;
  };
  /// What was counted last of the free blocks of segments in use, and of their rises.
  struct Counted {
    Split now, rises;
  };
  /// Segments or pages, and their bytes.
  struct BackingCount {
    std::uint64_t pieces = 0, bytes = 0;
  };

  Totals& totals_;
  std::atomic<Pool*> pool_;
  std::atomic<Stream> stream_;
  std::atomic<bool> gone_{false};
  const bool on_pages_;
  mutable Mutex mutex_;
  Layout small_ CISTERN_GUARDED_BY(mutex_);
  Layout large_ CISTERN_GUARDED_BY(mutex_);
  std::array<Counted, kSizeKindCount> counted_ CISTERN_GUARDED_BY(mutex_);
  std::array<BackingCount, kSizeKindCount> backing_ CISTERN_GUARDED_BY(mutex_);
  bool withdrawn_ CISTERN_GUARDED_BY(mutex_) = false;  ///< withdrawn => nothing for other heaps

 public:
  struct Offering {
    OfferingHeaps* among = nullptr;
    std::size_t number = 0;  ///< so many heaps were made before it
  };
  Offering offering;
  /// Pages that lie aside (pages/parking.hpp). Under the backing's lock.
  std::atomic<std::uint32_t> aside{0};
  /// Of the pages backing, under its lock: the newest range of each kind.
  std::array<HeapSegment*, kSizeKindCount> newest_range{};
  /// Under the heap table's lock: its place among those that are gone.
  static constexpr std::size_t kNotListed = SIZE_MAX, kTaken = SIZE_MAX - 1;
  std::size_t gone_at = kNotListed;
  /// No page is smaller.
  static constexpr std::uint64_t kLeastPage = std::uint64_t{2} << 20;

  FreeLog frees CISTERN_GUARDED_BY(mutex_);
  /// Of threads, and of threads that have ended. Only the default pool's heaps have any.
  std::vector<ThreadCache*> caches CISTERN_GUARDED_BY(mutex_);
  std::uint64_t hits_unpolled CISTERN_GUARDED_BY(mutex_) = 0;
  /// Segments that are on their way to the device, and back here if it will not have them.
  std::uint32_t leaving CISTERN_GUARDED_BY(mutex_) = 0;
  /// Those of them that hold nothing and that the device has refused, linked by next.
  HeapSegment* refused CISTERN_GUARDED_BY(mutex_) = nullptr;
  /// Pages have come to other places than where they were mapped first (pages/homing.cpp).
  bool pages_moved CISTERN_GUARDED_BY(mutex_) = false;
  LowWater low_water CISTERN_GUARDED_BY(mutex_);  ///< of busyBytes()
  bool low_water_passed CISTERN_GUARDED_BY(mutex_) =
      false;  ///< low water came when a cache was put back
  /// The number of the capture into its pool that is under way, or 0. Meanwhile frees are for
  /// recorded.cpp, and what its stream has done by now says nothing of what the capture has freed.
  std::uint32_t recorded CISTERN_GUARDED_BY(mutex_) = 0;
  /// The epoch that ended when the latest such capture began.
  EpochMark before_recording CISTERN_GUARDED_BY(mutex_);

  /// An event recorded on the stream, and not yet seen complete.
  struct Mark {
    SharedEvent event;
    std::uint32_t epoch = 0;  ///< the last that it marks
    std::uint64_t at = 0;     ///< when it was recorded: nanoseconds of the host's clock
  };
  /// How far the stream is known to have come (progress.hpp).
  struct Completion {
    static constexpr std::size_t kMostMarks = 8;
    static constexpr std::uint8_t kMostFreeMarks = 16;
    std::uint32_t completed = 0;  ///< the last epoch known to be complete
    bool freed = false;           ///< something was freed that no mark covers
    bool busy = false;            ///< a thread is recording or asking, outside the lock
    std::uint8_t under_way = 0;   ///< so many marks, the oldest first
    std::uint8_t free_marks = 0;  ///< so many more are worth one at a free: others look for memory
    std::array<Mark, kMostMarks> marks{};
    std::uint64_t took = 0;         ///< nanoseconds until the last that was passed was seen to be
    std::uint64_t freed_bytes = 0;  ///< since the last mark
  };
  Completion completion CISTERN_GUARDED_BY(mutex_);
  /// Of large blocks, where memory comes in pages.
  RecentFrees recent CISTERN_GUARDED_BY(mutex_);
  /// Whether what was freed since the last mark is worth one at once: other heaps have looked for
  /// memory here lately, and it is much.
  bool wantsMark() const CISTERN_REQUIRES(mutex_) {
    constexpr std::uint64_t kPart = 64;
    if (without(Mechanism::kMarksAtFrees)) return false;
    return completion.free_marks > 0 && completion.freed_bytes >= large_.segmentBytes() / kPart;
  }
  std::uint32_t epoch CISTERN_GUARDED_BY(mutex_) = 1;
  std::uint32_t generation CISTERN_GUARDED_BY(mutex_) = 0;  ///< how often epochs were renumbered
  /// What any epoch from before a renumbering may be afterwards, at most.
  static constexpr std::uint32_t kOldEpochs = 1;
};

}  // namespace cistern
