// A heap: the segments and the free blocks of one stream in one pool, behind one lock.
//
// A heap names its pool and lists its caches, but looks into neither, nor into pages or the device:
// what it needs of them is handed to it.
//
// Locks: a heap's mutex guards everything in it but HeapIdentity. No device call is ever made under
// it. Read first: layout.hpp, completion.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/events/stream_uses.hpp"
#include "allocator/engine/ground/heap_segment.hpp"
#include "allocator/engine/ground/limit.hpp"
#include "allocator/engine/ground/observer.hpp"
#include "allocator/engine/ground/ownership.hpp"
#include "allocator/engine/ground/request.hpp"
#include "allocator/engine/heap/completion.hpp"
#include "allocator/engine/heap/frees.hpp"
#include "allocator/engine/heap/heap_memory.hpp"
#include "allocator/engine/heap/low_water.hpp"
#include "allocator/engine/heap/rounds.hpp"

namespace cistern {

// ---- Whose a heap is, and its lock -------------------------------------------------------------

class Heap;
class Pool;

/// A board where a heap says whether it may have memory for others. HeapTable
/// (core/heap_table.hpp) is one.
class OfferBoard {
 public:
  /// Whether the heap may have something for others. Pre: its lock is held.
  virtual void setOffering(Heap& heap, bool offers) noexcept = 0;

 protected:
  ~OfferBoard() = default;
};

/// Stream and pool change neither while the heap holds memory, nor while some of it is on its way
/// to the device. Anyone may ask at any time. The answer may be outdated a moment later, and code
/// that acts on it asks again under the lock. The Pool reference is always safe to read: records
/// are complete when published, and not deleted before the allocator.
class HeapIdentity {
 public:
  HeapIdentity(Pool& pool, Stream stream, MemoryKind memory)
      : pool_(&pool), stream_(stream), memory_(memory) {}

  /// The stream of a parked heap (core/heap_table.hpp). It is no stream's name: reports leave it
  /// out.
  static constexpr Stream kNobodys{UINTPTR_MAX};

  Stream stream() const { return stream_.load(std::memory_order_relaxed); }
  /// The heap only names it: what the heap needs of its pool is in HeapOptions.
  Pool& pool() const { return *pool_.load(std::memory_order_acquire); }
  /// Whether the stream has been forgotten (known_streams.hpp sets it). Then it is not asked, and
  /// look-ups for requests pass over the heap.
  bool forgotten() const { return forgotten_.load(std::memory_order_acquire); }
  void setForgotten(bool forgotten) { forgotten_.store(forgotten, std::memory_order_release); }
  /// Whether requests of that stream are for this heap, which had it a moment ago. Reads
  /// `forgotten_` first: become() writes the stream before it clears `forgotten_`.
  bool isFor(Stream s) const { return !forgotten() && stream() == s; }
  /// Changes at most once, from kPages to kSegments, before the heap has ever had memory:
  /// Heap::leavePages.
  MemoryKind memory() const { return memory_.load(std::memory_order_relaxed); }
  bool onPages() const { return memory() != MemoryKind::kSegments; }
  /// Whether it lies beside the stream's heap in that pool, and holds what the device had no room
  /// for.
  bool overflow() const { return memory() == MemoryKind::kOverflow; }
  /// How many streams and pools the heap has belonged to before. Notes stored under number() carry
  /// it, so that stale ones are recognised. Changes while the heap holds nothing.
  std::uint32_t incarnation() const { return incarnation_.load(std::memory_order_relaxed); }
  /// The stream that a block in use was allocated for.
  Stream streamOf(const Block& block) const {
    return ownership::isOwned(ownership::load(block)) ? stream() : block.use.stream;
  }
  Mutex& mutex() const CISTERN_TSA(lock_returned(mutex_)) { return mutex_; }

  /// How many heaps were made before it.
  std::size_t number() const { return number_; }
  /// Pre: nobody else sees the heap yet. A heap that has joined no board offers nothing.
  void join(OfferBoard& board, std::size_t number) { board_ = &board, number_ = number; }

 protected:
  /// The heap is that stream's from now on, in a pool with the same backing.
  void become(Pool& pool, Stream stream) noexcept {
    pool_.store(&pool, std::memory_order_release);
    stream_.store(stream, std::memory_order_relaxed);
    incarnation_.fetch_add(1, std::memory_order_relaxed);
    setForgotten(false);
  }
  void leavePages() noexcept { memory_.store(MemoryKind::kSegments, std::memory_order_relaxed); }
  OfferBoard* board() const { return board_; }

 private:
  std::atomic<Pool*> pool_;
  std::atomic<Stream> stream_;
  std::atomic<bool> forgotten_{false};
  std::atomic<MemoryKind> memory_;
  std::atomic<std::uint32_t> incarnation_{0};
  mutable Mutex mutex_{LockRank::kHeap};
  std::size_t number_ = 0;
  OfferBoard* board_ = nullptr;
};

class ThreadCache;

/// The size of the largest free block, in bytes.
inline std::uint64_t largestFree(const FreeIndex& index) {
  const Block* largest = index.largest();
  return largest ? largest->bytes() : 0;
}

/// The part of the allocator's options, and of its pool's, that a heap needs. Pool::heapOptions
/// makes it.
struct HeapOptions {
  SplitRules small, large;  ///< of small requests, and of large ones
  MemoryKind memory = MemoryKind::kSegments;
  MempoolId_t pool{};  ///< for the observer
};

/// Its lock is on a line of its own: threads on other streams have other heaps.
class alignas(64) Heap : public HeapIdentity {
 public:
  Heap(Pool& pool, Stream stream, const HeapOptions& options, Totals& totals,
       std::uint64_t first_epoch = 1)
      : HeapIdentity(pool, stream, options.memory),
        small_(SizeKind::kSmall, options.small, totals),
        large_(SizeKind::kLarge, options.large, totals),
        completion_(first_epoch),
        pool_id_(options.pool) {}

  CountedLayout& layout(SizeKind kind) CISTERN_REQUIRES(mutex()) {
    return kind == SizeKind::kSmall ? small_ : large_;
  }
  std::uint64_t busyBytes() const CISTERN_REQUIRES(mutex()) {
    return small_.totals().busy_bytes + large_.totals().busy_bytes;
  }
  std::uint64_t reservedBytes() const CISTERN_REQUIRES(mutex()) {
    return small_.reservedBytes() + large_.reservedBytes();
  }

  /// The block that the program has at a device address, for which `segment` was looked up; or
  /// null. `seen`: what peek() said, or null.
  Block* find(const HeapSegment& segment, Address address, Block* seen = nullptr)
      CISTERN_REQUIRES(mutex()) {
    if (!segment.covers(address, *this)) return nullptr;
    const Address place = segment.placeOf(address);
    const bool still = seen && seen->segment == &segment && seen->address() == place &&
                       seen->state() == BlockState::kAllocated;
    Block* const block = still ? seen : layout(segment.kind).find(place);
    return block && ownership::heldByProgram(*block) ? block : nullptr;
  }
  /// The block that lies at a device address, without the lock, for a caller that has the block. It
  /// may, seldom, miss an existing block and return null. For any other caller the result is
  /// meaningless. No analysis: it is made to be called without the lock.
  Block* peek(const HeapSegment& segment, Address address) const noexcept CISTERN_NO_TSA {
    const Layout& from = segment.kind == SizeKind::kSmall ? small_ : large_;
    return from.peek(segment.placeOf(address));
  }

  // ---- Blocks

  /// A block for the request out of this heap's free memory, or null. Counts it. In a heap that
  /// moves in (Rounds), a large block lies at its new places.
  Block* allocate(const Request& request) CISTERN_REQUIRES(mutex());
  /// allocate(), for a hit: where the request was placed two rounds ago (Rounds), if
  /// that is free. Null, and `elsewhere`, if the request had a place and it is not: pages may come
  /// back there (PageBacking::placeAsBefore).
  /// Pre: no slack.
  Block* allocateAsBefore(const Request& request, bool& elsewhere) CISTERN_REQUIRES(mutex());
  /// The same with slack.
  Block* alignedAsBefore(const Request& request, bool& elsewhere) CISTERN_REQUIRES(mutex());
  /// A block out of one free block of this heap, for a request of any stream. Counts it. The block
  /// begins at `at`, unless that is 0. Then [at, at + request.rounded()) lies in the free block,
  /// and the request has no slack.
  Block* allocateFrom(Block& free, const Request& request, Address at = 0)
      CISTERN_REQUIRES(mutex());
  /// The state of a block that goes back among the free.
  enum class Freed : std::uint8_t {
    kNow,       ///< in use until now
    kComplete,  ///< its last use is complete: any stream may take it
    kFromCache  ///< a cache kept it; the program freed it earlier
  };
  /// Puts a block that the program held, or a pending one, or a cached one, back among the free.
  void release(Block& block, std::uint64_t tick, Freed how = Freed::kNow) noexcept
      CISTERN_REQUIRES(mutex());
  /// Makes a whole free block a pending one that the program never had.
  void setAside(Block& free) noexcept CISTERN_REQUIRES(mutex());
  /// Hands a pending block out again, whole.
  void reissue(Block& block, const Request& request) noexcept CISTERN_REQUIRES(mutex());
  /// The program has freed the block, but work of other streams still uses it. Returns which those
  /// are.
  StreamUses setPending(Block& block) noexcept CISTERN_REQUIRES(mutex());

  /// The work that is to be done after a free, once the lock is given up.
  struct Due {
    bool low_water = false;  ///< the heap holds as little as it ever does, and pages have moved
    bool mark = false;       ///< what was freed is worth an event of its own
    bool any() const { return low_water || mark; }
  };
  /// `cached`: bytes that the heap counts as busy and that the freeing thread's cache keeps.
  Due dueAfterFree(std::uint64_t cached = 0) noexcept CISTERN_REQUIRES(mutex()) {
    return {low_water_.isDue(busyBytes() - cached),
            completion_.wantsMark(large_.totals().segment_bytes)};
  }

  // ---- Memory comes and goes

  /// The origin of a segment.
  enum class From : std::uint8_t {
    kDevice,     ///< the device: no queued work uses it
    kOtherHeap,  ///< another heap
    kRefused     ///< this heap: the device has refused to take it back
  };
  /// Takes a wholly free segment in. Throws std::bad_alloc, changing nothing.
  void add(HeapSegment& segment, From from) CISTERN_REQUIRES(mutex());
  /// Lets a segment go: to the device if `returned`, else to another heap.
  void remove(HeapSegment& segment, bool returned) noexcept CISTERN_REQUIRES(mutex());
  /// Memory comes to [from, to) of a hole as free memory, last used in `epoch`. Returns the free
  /// block. Reserved bytes are for CountedLayout::countBacking to count.
  Block* fill(SizeKind kind, Block& hole, Address from, Address to, std::uint64_t epoch) noexcept
      CISTERN_REQUIRES(mutex());
  /// [from, to) of a free block becomes a hole, which it returns. Reserved bytes are for
  /// CountedLayout::countBacking to count.
  Block* punch(SizeKind kind, Block& free, Address from, Address to) noexcept
      CISTERN_REQUIRES(mutex());
  /// Whether the heap is known to have nothing for other heaps, so that their searches skip it.
  /// That ends when memory becomes free or comes.
  bool withdrawn() const CISTERN_REQUIRES(mutex()) { return (attention_ & kWithdrawn) != 0; }
  void setWithdrawn(bool withdrawn) CISTERN_REQUIRES(mutex()) { set(kWithdrawn, withdrawn); }
  /// Other heaps' searches skip this heap from now on, until memory becomes free or comes. Pre: the
  /// heap has no pages, or segment, for other heaps. If the index has left blocks out, the function
  /// does nothing; callers need not check that.
  void withdraw() noexcept CISTERN_REQUIRES(mutex());
  /// Ends that: memory that was held in place may go to other heaps again.
  void offer() noexcept CISTERN_REQUIRES(mutex()) { (void)attend(); }
  /// withdraw(), if the heap has no pages, or segment, for other heaps.
  void withdrawIfEmpty() noexcept CISTERN_REQUIRES(mutex());

  // ---- Sleep (allocator/sleep). A heap that sleeps has blocks in use and holes, and nothing free:
  // a block that is freed becomes a hole. Its memory may be away.

  bool asleep() const CISTERN_REQUIRES(mutex()) { return (attention_ & kAsleep) != 0; }
  /// All that is free becomes holes. Throws std::bad_alloc, changing nothing. Pre: its memory is
  /// pages.
  void fallAsleep() CISTERN_REQUIRES(mutex());
  /// Memory that becomes free is free from now on. The holes that have memory are for the caller to
  /// fill.
  void wake() noexcept CISTERN_REQUIRES(mutex());

  /// The bytes of its pages that are memory of the host.
  std::uint64_t host_bytes CISTERN_GUARDED_BY(mutex()) = 0;
  /// Whether any of its memory is the device's. A heap of overflow as a rule has none.
  bool hasDeviceMemory() const CISTERN_REQUIRES(mutex()) { return reservedBytes() > host_bytes; }

  /// Ends the present epoch, and returns it. If stamps have run out, all free blocks get new
  /// ones.
  std::uint64_t endedEpoch() noexcept CISTERN_REQUIRES(mutex());
  /// Whether the heap has no memory, and none on its way to the device. Also, as far as is known,
  /// nothing that its stream did with former memory is still under way. Also whether no
  /// thread is asking its marks, and no mark is under way.
  bool holdsNothing() const CISTERN_REQUIRES(mutex()) {
    return reservedBytes() == 0 && busyBytes() == 0 && !leaving_.any() && !completion_.isAsked() &&
           !completion_.leftInUse();
  }
  /// Makes it the heap of another stream and pool with the same backing. False unless it holds
  /// nothing.
  bool moveTo(Pool& pool, Stream stream, const HeapOptions& options) noexcept
      CISTERN_REQUIRES(mutex());

  /// Its memory comes in segments from now on. Pre: it was to come in pages, and none ever did.
  void leavePages(const HeapOptions& options) noexcept CISTERN_REQUIRES(mutex());

  /// Caches of threads, and of threads that have ended. Only the default pool's heaps have any. The
  /// heap keeps the list for cache/, and does not look into it.
  const std::vector<ThreadCache*>& caches() const CISTERN_REQUIRES(mutex()) { return caches_; }
  void addCache(ThreadCache& cache) CISTERN_REQUIRES(mutex()) { caches_.push_back(&cache); }

  /// From now on the observer is told of each block that the program gets or frees; null: nobody.
  void observe(Observer* observer) CISTERN_REQUIRES(mutex()) { observer_ = observer; }
  bool isObserved() const CISTERN_REQUIRES(mutex()) { return observer_ != nullptr; }

  // ---- Its parts

  FreeLog& frees() CISTERN_REQUIRES(mutex()) { return frees_; }
  LeavingSegments& leaving() CISTERN_REQUIRES(mutex()) { return leaving_; }
  LowWater& lowWater() CISTERN_REQUIRES(mutex()) { return low_water_; }
  Completion& completion() CISTERN_REQUIRES(mutex()) { return completion_; }
  /// The recent frees of large blocks, if memory comes in pages.
  RecentFrees& recentFrees() CISTERN_REQUIRES(mutex()) { return recent_; }
  /// Where large blocks were placed, if memory comes in pages.
  Rounds& rounds() CISTERN_REQUIRES(mutex()) { return rounds_; }
  const Rounds& rounds() const CISTERN_REQUIRES(mutex()) { return rounds_; }
  /// Whether the heap is to freeze now.
  bool isFreezeDue() const CISTERN_REQUIRES(mutex()) {
    return rounds_.isFreezeDue(large_.totals().busy_bytes / kMiB);
  }

  std::size_t hostBytes() const CISTERN_REQUIRES(mutex());
  void audit() CISTERN_REQUIRES(mutex());

  /// Its pages that are memory of the host.
  std::uint32_t host_pages CISTERN_GUARDED_BY(mutex()) = 0;
  /// Hits since pending blocks were last polled.
  std::uint32_t hits_unpolled CISTERN_GUARDED_BY(mutex()) = 0;

 private:
  /// The free memory [from, to) of a segment, in places, as it has come about.
  struct Free {
    const Segment& in;
    Address from, to;
    std::uint32_t stamp;  ///< of its last use
    bool fresh = false;   ///< it comes from the device: no queued work uses it
  };
  /// The one door for memory that becomes free here, whether a block is freed, a page comes, or a
  /// segment. Put a new rule about kept memory here. Put the work it causes in dueAfterFree.
  /// `noteFree` runs before the layout changes for a block or a page, and after it for a segment.
  void noteFree(SizeKind kind, const Free& memory, std::uint64_t freed_bytes) noexcept
      CISTERN_REQUIRES(mutex());
  /// The program gets a block of this heap.
  void begin(Block& block, const Request& request) noexcept CISTERN_REQUIRES(mutex());
  void noteRound(const Block& block) noexcept CISTERN_REQUIRES(mutex());
  Block* allocateBest(const Request& request) CISTERN_REQUIRES(mutex());
  Block* allocateAligned(const Request& request) CISTERN_REQUIRES(mutex());
  Block* take(Block& free, const Request& request, Address at) CISTERN_REQUIRES(mutex());
  Block* allocateAtPlace(const Request& request, bool& elsewhere) CISTERN_REQUIRES(mutex());
  /// Why memory that becomes free needs a closer look. They share a word: a free tests it once.
  enum Attention : std::uint8_t {
    kWithdrawn = 1,  ///< withdrawn()
    kAsleep = 2,     ///< asleep()
  };
  void set(Attention what, bool on) CISTERN_REQUIRES(mutex()) {
    attention_ = std::uint8_t(on ? attention_ | what : attention_ & ~what);
  }
  bool attend() noexcept CISTERN_REQUIRES(mutex());

  CountedLayout small_ CISTERN_GUARDED_BY(mutex());
  CountedLayout large_ CISTERN_GUARDED_BY(mutex());
  std::uint8_t attention_ CISTERN_GUARDED_BY(mutex()) = 0;  ///< of Attention
  FreeLog frees_ CISTERN_GUARDED_BY(mutex());
  std::vector<ThreadCache*> caches_ CISTERN_GUARDED_BY(mutex());
  LeavingSegments leaving_ CISTERN_GUARDED_BY(mutex());
  LowWater low_water_ CISTERN_GUARDED_BY(mutex());
  Completion completion_ CISTERN_GUARDED_BY(mutex());
  RecentFrees recent_ CISTERN_GUARDED_BY(mutex());
  Rounds rounds_ CISTERN_GUARDED_BY(mutex());
  MempoolId_t pool_id_ CISTERN_GUARDED_BY(mutex());
  Observer* observer_ CISTERN_GUARDED_BY(mutex()) = nullptr;  ///< null: nobody is told
};

/// Locks the heaps for a scope, in the order in which the heaps were made. It locks each once,
/// however often it is named. The caller holds `several`, the lock for looking at several heaps. So
/// no two threads take several heaps' locks at once. The analysis does not follow it: code that
/// uses one of the heaps says Mutex::assertHeld.
class HeapLocks {
 public:
  HeapLocks(const Mutex& several, std::vector<Heap*>& heaps) : heaps_(heaps) {
    several.assertHeld();
    std::ranges::sort(heaps_, {}, &Heap::number);
    heaps_.erase(std::unique(heaps_.begin(), heaps_.end()), heaps_.end());
    std::ranges::for_each(heaps_, &Mutex::lock, &Heap::mutex);
  }
  ~HeapLocks() { std::ranges::for_each(heaps_, &Mutex::unlock, &Heap::mutex); }
  HeapLocks(const HeapLocks&) = delete;
  HeapLocks& operator=(const HeapLocks&) = delete;

 private:
  std::vector<Heap*>& heaps_;
};

/// Calls visit(HeapSegment&) for each segment.
template <class Visit>
void forEachSegment(Heap& heap, Visit visit) CISTERN_REQUIRES(heap.mutex()) {
  for (SizeKind kind : kSizeKinds) {
    for (Segment* s = heap.layout(kind).segments(); s; s = s->next)
      visit(static_cast<HeapSegment&>(*s));
  }
}
/// Calls visit(Block&) for each block.
template <class Visit>
void forEachBlock(Heap& heap, Visit visit) CISTERN_REQUIRES(heap.mutex()) {
  forEachSegment(heap, [&](HeapSegment& segment) {
    for (Block* b = segment.first; b; b = b->next) visit(*b);
  });
}
/// Whether the block begins at a multiple of the request's alignment.
inline bool isAligned(const Block& block, const Request& request) {
  return (deviceAddress(block) & (request.alignment() - 1)) == 0;
}
/// Where in the free block the request's block would begin.
inline Address placeIn(const Block& free, const Request& request) {
  const Address address = deviceAddress(free);
  return free.address() + (roundUp(address, request.alignment()) - address);
}
/// Whether the block fits there. A free block that the rules keep whole is not cut in front.
inline bool hasRoom(const Layout& in, const Block& free, const Request& request) {
  const Address at = placeIn(free, request);
  return at + request.rounded() <= free.end() &&
         (at == free.address() || free.granules < in.rules.max_split);
}
/// The best free block for the request that was freed in one of the epochs, and of which `also`
/// holds; null for none.
template <class Also = bool (*)(const Block&)>
Block* bestFree(
    Heap& heap, const Request& request, Epochs epochs,
    Also also = [](const Block&) { return true; }) CISTERN_REQUIRES(heap.mutex()) {
  const Completion& known = heap.completion();
  Layout& in = heap.layout(request.kind);
  const auto serves = [&](const Block& block) {
    return epochs.contain(known.epochOf(block.epoch)) && also(block);
  };
  if (request.slack == 0) [[likely]]
    return in.bestFitIf(request.granules, serves);
  const auto aligned = [&](const Block& block) {
    return serves(block) && hasRoom(in, block, request);
  };
  Block* const best = in.bestFitIf(request.granules, aligned);
  return best == nullptr ? in.bestFitIf(request.enough(), aligned) : best;
}
/// Free blocks whose last use is not known to be complete. Throws std::bad_alloc.
std::vector<Block*> incompleteBlocks(Heap& heap) CISTERN_REQUIRES(heap.mutex());
/// Notes that everything free now is complete. Memory that has left this heap may still be in use.
void noteFreeComplete(Heap& heap) noexcept CISTERN_REQUIRES(heap.mutex());
/// Bytes that lie free in the heaps, without blocks that a thread's cache keeps. Takes the heaps'
/// locks, one at a time.
std::uint64_t freeBytes(const std::vector<Heap*>& heaps);
/// The most of those bytes that may lie on the device. Locks are the same.
std::uint64_t freeDeviceBytes(const std::vector<Heap*>& heaps);

}  // namespace cistern
