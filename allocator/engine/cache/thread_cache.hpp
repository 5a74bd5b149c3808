// Blocks of one heap that one thread has freed and is likely to ask for again. As a rule, an
// allocation takes one and a free gives one back. Neither takes a shared lock, or
// executes a locked instruction. Each reads two words that other threads write, both seldom
// (paths/fast_path.hpp). The README lists its parts.
//
// A cache holds a bounded number of bytes. A request that finds no memory takes all of them back
// first (HeldCaches). So a cache stands in the way of nothing but a merge of free neighbours.
//
// Two kinds of thread may touch the cached blocks. One is the owner, under the biased lock of its
// counters. The other is a thread that holds the heap's lock and either is the owner or keeps the
// biased lock revoked.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "allocator/engine/cache/cached_blocks.hpp"
#include "allocator/engine/ground/ownership.hpp"
#include "allocator/engine/statistics/totals.hpp"
#include "allocator/layout/block.hpp"

namespace cistern {

// ---- Remote frees ------------------------------------------------------------------------------
//
// Blocks that other threads have freed, on their way to the cache that owns them: a message instead
// of a lock. Any thread adds. A thread that holds the heap's lock, and may touch the cache, takes
// them all. A block on the list keeps its WhoFreed (ownership.hpp) in use.stream.

class RemoteFrees {
 public:
  /// The bytes that may be on their way at once. Beyond that, other threads lock the heap.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;

  enum class Answer : std::uint8_t { kTaken, kNoRoom, kNotHeld };

  /// Sends a block. `holder`: the holder word just read. It names this cache, and kHeld. kNoRoom:
  /// nothing has changed. kNotHeld: somebody else frees it too.
  Answer add(Block& block, std::uint32_t holder, WhoFreed who) noexcept {
    const std::uint64_t bytes = block.bytes();
    Block* top = top_.load(std::memory_order_relaxed);
    if (top == closed() || bytes_.load(std::memory_order_relaxed) + bytes > kMostBytes)
      return Answer::kNoRoom;
    if (!ownership::change(block, holder, ownership::moved(holder, ownership::Where::kRemoteFreed)))
      return Answer::kNotHeld;
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    block.use.stream = who.word();
    do {
      if (top == closed()) {
        bytes_.fetch_sub(bytes, std::memory_order_relaxed);
        ownership::store(block, holder);
        return Answer::kNoRoom;
      }
      block.use.uses = top;
    } while (!top_.compare_exchange_weak(top, &block, std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
    return Answer::kTaken;
  }

  bool any() const noexcept {
    Block* const top = top_.load(std::memory_order_relaxed);
    return top != nullptr && top != closed();
  }
  /// The last that came, linked by use.uses; null for none.
  Block* takeAll() noexcept { return replace(nullptr); }
  /// takeAll(); and from now on, until open(), there is no room.
  Block* close() noexcept { return replace(closed()); }
  void open() noexcept { top_.store(nullptr, std::memory_order_release); }

 private:
  // A marker, not a block: it stands in top_ while the list is closed.
  static Block* closed() noexcept { return reinterpret_cast<Block*>(alignof(Block)); }

  // Blocks that are added meanwhile are counted already, so never more is subtracted than was
  // added. It exchanges even an empty list. So a thread that adds later sees all that the caller
  // wrote before.
  Block* replace(Block* by) noexcept {
    Block* const top = top_.load(std::memory_order_relaxed);
    if (top == closed()) return nullptr;
    Block* const all = top_.exchange(by, std::memory_order_acq_rel);
    std::uint64_t bytes = 0;
    for (const Block* b = all; b; b = ownership::linkedTo(*b)) bytes += b->bytes();
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return all;
  }
  std::atomic<Block*> top_{nullptr};
  std::atomic<std::uint64_t> bytes_{0};
};

class alignas(64) ThreadCache {
 public:
  /// A cache of no thread and no table.
  constexpr ThreadCache() noexcept = default;
  /// A cache of the heap, and nobody's yet. `handle`: 0 for none; `number`: its own in the table.
  ThreadCache(std::uint64_t table, std::uint64_t handle, Heap& heap, std::uint32_t number,
              CacheGround& ground) noexcept
      : table_(table),
        stream_(heap.stream()),
        ground_(&ground),
        blocks_(heap, ownership::holderOf(number, ownership::Where::kHeld), ground) {
    setHandle(handle);
  }

  // ---- The table and the stream that it belongs to. Records outlive their use: a thread may read
  // its old one. Its table number then differs from the thread's table.

  /// The number of the table that it belongs to; 0 for none.
  std::uint64_t table() const { return table_.load(std::memory_order_acquire); }
  Stream stream() const { return stream_.load(std::memory_order_relaxed); }
  /// The handle that C programs have of its allocator; else a value that is no handle.
  std::uint64_t handle() const { return handle_.load(std::memory_order_acquire); }
  /// `handle`: 0 for none.
  void setHandle(std::uint64_t handle) noexcept {
    handle_.store(handle != 0 ? handle : toAddress(this), std::memory_order_release);
  }
  Heap& heap() const { return blocks_.heap(); }
  std::uint32_t holder() const { return blocks_.holder(); }

  // ---- The thread that owns it, if any. Changes under the heap's lock; the owner may look without
  // it.
  //
  //   isMine()   =>  isOpen()
  //   isOpen()   =>  counters() are those of its thread
  //   !isOpen()  =>  biasedLock() is revoked

  bool isOpen() const noexcept { return counters_ != &ThreadCounters::nobodys; }
  bool isMine() const noexcept { return isOpen() && totals().mine() == counters_; }
  ThreadCounters& counters() const noexcept { return *counters_; }
  BiasedLock& biasedLock() const noexcept { return counters_->biased_lock; }

  // ---- Its parts

  CachedBlocks& blocks() { return blocks_; }
  const CachedBlocks& blocks() const { return blocks_; }
  RecentBlocks& recents() const noexcept { return counters_->recents; }

  // ---- The owner under its biased lock ---------------------------------------------------------

  /// Whether requests may be hits: no router needs to look at them.
  bool allowsHits() const noexcept {
    return table() == ground_->allowing_hits.load(std::memory_order_relaxed);
  }
  /// The address of a block of the cache's that goes to the program.
  void* handOut(Block& block) noexcept { return handOut(block, recents()); }
  static void* handOut(Block& block, RecentBlocks& recents) noexcept {
    const Address address = deviceAddress(block);
    recents.remember(address, block);
    return toPointer(address);
  }

  // ---- The owner without any lock --------------------------------------------------------------

  /// Publishes what was counted (totals.hpp).
  [[gnu::cold]] void publish() noexcept;

  // ---- Under the heap's lock, by the owner, or while the biased lock is revoked ----------------

  /// Belongs to no table any more; what it keeps goes with the heap.
  void unbind() noexcept {
    setHandle(0);
    blocks_.abandon();
    table_.store(0, std::memory_order_release);
  }
  /// Becomes the calling thread's, or nobody's.
  void open(ThreadCounters& mine) noexcept;
  void close() noexcept;
  /// No other thread leaves blocks here from now on; or again. The blocks that they have left are
  /// taken in. Pre: the heap's lock is held, and the biased lock is the caller's or revoked.
  void closeRemoteFrees() noexcept;
  void openRemoteFrees() noexcept {
    if (isOpen()) remote_frees_.open();
  }
  /// Its heap is this stream's from now on.
  void follow(Stream stream) noexcept { stream_.store(stream, std::memory_order_relaxed); }

  /// Whether takeLocked could find something that a hit did not.
  bool mayHave(std::uint64_t bytes) const noexcept {
    if (remote_frees_.any()) [[unlikely]]
      return true;
    return bytes <= CacheSizes::kMostBytes && blocks_.has(std::uint32_t(granulesFor(bytes)));
  }
  /// A block that a hit found no way to: the biased lock was revoked, or others have returned some.
  Block* takeLocked(std::uint64_t bytes) noexcept;
  /// The block that takeLocked would return, or null. Pre: mayHave(bytes).
  const Block* nextLocked(std::uint64_t bytes) noexcept;
  /// A free, which may put others back to make room. False: the heap should have it. Pre: the
  /// block is this cache's, and the program has it.
  bool accept(Block& block, WhoFreed who) noexcept;
  /// Whether there is anything in it, or on its way.
  bool keepsAny() const { return blocks_.bytes() != 0 || remote_frees_.any(); }
  /// Puts everything back into the heap.
  void flush() noexcept;

  // ---- Other threads ---------------------------------------------------------------------------

  /// Leaves a freed block for the owner, who takes it in later.
  RemoteFrees::Answer freeRemotely(Block& block, std::uint32_t holder, WhoFreed who) noexcept {
    const auto answer = remote_frees_.add(block, holder, who);
    if (answer == RemoteFrees::Answer::kTaken) list();
    return answer;
  }

  /// Puts the cache among those that may hold something. A thread that takes everything back looks
  /// at no others.
  void list() noexcept {
    if (!listed_.load(std::memory_order_relaxed) && !listed_.exchange(true)) push();
  }
  /// Takes the cache off that list. Returns the cache that was listed before it.
  ThreadCache* unlist() noexcept {
    ThreadCache* const next = next_;
    listed_.store(false, std::memory_order_seq_cst);
    return next;
  }

 private:
  /// Pre: isOpen().
  Totals& totals() const noexcept { return *counters_->totals.load(std::memory_order_relaxed); }
  void takeIn(Block* first) noexcept;
  void takeRemoteFrees() noexcept { takeIn(remote_frees_.takeAll()); }
  [[gnu::cold]] void push() noexcept;

  ThreadCounters* counters_ = &ThreadCounters::nobodys;
  std::atomic<std::uint64_t> table_{0};
  std::atomic<Stream> stream_{Stream{}};  ///< changes when its heap is parked or gets a new stream
  std::atomic<std::uint64_t> handle_{0};  ///< its own address for none, as that is no handle
  CacheGround* ground_ = nullptr;
  CachedBlocks blocks_;
  ThreadCache* next_ = nullptr;      ///< the cache that was listed before
  std::atomic<bool> listed_{false};  ///< in CacheGround::filled, or about to be
  alignas(64) RemoteFrees remote_frees_;
};

// ---- Caches held still -------------------------------------------------------------------------
//
// Empties the caches of some heaps and keeps them empty. It is for a caller that needs all of those
// heaps' memory, or looks at the heaps as a whole.

/// While it lives, the owners' biased locks are revoked: an owner that comes goes to the heap's
/// lock, and waits there. So no owner changes what its cache keeps. Pre: the caller holds the locks
/// of all the heaps, and does so until it goes.
class StillCaches {
 public:
  explicit StillCaches(std::span<Heap* const> heaps) noexcept : heaps_(heaps) { revoke(); }
  explicit StillCaches(Heap& heap) noexcept : only_(&heap), heaps_(&only_, 1) { revoke(); }
  ~StillCaches() {
    forEachOther([](BiasedLock& biased_lock) { biased_lock.restore(); });
  }
  StillCaches(const StillCaches&) = delete;
  StillCaches& operator=(const StillCaches&) = delete;

 protected:
  template <class Visit>
  void forEachCache(Visit visit) const {
    for (Heap* heap : heaps_) {
      heap->mutex().assertHeld();
      for (ThreadCache* cache : heap->caches()) visit(*cache);
    }
  }

 private:
  // The calling thread is not in its own caches now. Caches that nobody owns are empty.
  template <class Visit>
  void forEachOther(Visit visit) const {
    forEachCache([&](ThreadCache& cache) {
      if (cache.isOpen() && !cache.isMine()) visit(cache.biasedLock());
    });
  }
  void revoke() noexcept {
    BiasedLock::revokeAll([this](auto visit) { forEachOther(visit); });
  }

  Heap* only_ = nullptr;
  std::span<Heap* const> heaps_;
};

/// The caches are still, and empty.
class HeldCaches : public StillCaches {
 public:
  using StillCaches::StillCaches;
  /// Whether there was anything in them.
  bool hadAny() const { return any_; }

 private:
  bool flush() const noexcept {
    bool any = false;
    forEachCache([&](ThreadCache& cache) {
      any |= cache.keepsAny();
      cache.flush();
    });
    return any;
  }

  const bool any_ = flush();
};

}  // namespace cistern
