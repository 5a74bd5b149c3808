// All heaps of an allocator. A hash table leads from a stream to its heap in the default pool
// without a lock. Pools know their own heaps (pool.hpp).
//
// No heap is deleted before the table. A heap that holds nothing any more is parked here for the
// next stream or pool once its pool is gone. A heap of the default pool's is parked once its stream
// is forgotten. So there are never many more than are of use at once.
//
// Every answer of the hash table is checked: a slot may name a heap that is another stream's by
// now, and is passed over then. A stream that it does not find is looked up again under the lock
// before a heap is made. So a reader may look into an outgrown table, or one that is being filled.
//
// Every heap counts as having memory for others, until somebody looks into it and finds none. It
// counts again as soon as memory becomes free there, or comes. So n streams that hold what they
// have are looked into n times, not n times by each.
//
// Locks: the writers', and that of the list.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/core/pool.hpp"

namespace cistern {

class HeapTable final : public OfferBoard {
 public:
  HeapTable(Pool& default_pool, Totals& totals);

  /// The stream's heap in the default pool, or null when it has none yet, or is forgotten.
  /// Lock-free.
  Heap* find(Stream stream) const noexcept;
  /// The stream's heap in the pool; likewise.
  Heap* find(const Pool& pool, Stream stream) const {
    return pool.isDefault() ? find(stream) : pool.find(stream);
  }
  /// The stream's heap in the pool. If it has none, one that was parked or a new one. `overflow`:
  /// the heap beside it, of pages of host memory. Pre: then the pool is of device memory, in pages.
  /// Throws std::bad_alloc, changing nothing.
  Heap& findOrMake(Pool& pool, Stream stream, bool overflow = false);
  /// Whether there is, or was, a heap of overflow.
  bool anyOverflow() const noexcept { return any_overflow_.load(std::memory_order_relaxed); }
  /// The overflow's heap beside the heap, or the heap beside which that lies; null for none.
  static Heap* beside(const Heap& heap) {
    return heap.pool().heapWith(heap.stream(), !heap.overflow());
  }
  /// One of the default pool's heaps whose stream is forgotten, another each time; null for none.
  /// It may be parked, if it holds nothing.
  Heap* nextForgotten() noexcept;
  /// Sets whether the stream counts as forgotten, for its heaps in all pools. Pre: no verb names
  /// the stream meanwhile.
  void setForgotten(Stream stream, bool forgotten) noexcept;
  /// All heaps in the order they were made, parked ones too. A heap made meanwhile may be missing.
  std::vector<Heap*> all() const;
  /// Those of them for which is(const Heap&) says so.
  template <class Is>
  std::vector<Heap*> allWhere(Is is) const {
    std::vector<Heap*> heaps = all();
    std::erase_if(heaps, [&](const Heap* heap) { return !is(*heap); });
    return heaps;
  }
  /// Those of them with pages of that kind.
  std::vector<Heap*> with(MemoryKind kind) const {
    return allWhere([=](const Heap& heap) { return shareRoom(heap.memory(), kind); });
  }
  /// The heap of that number, parked or not; null beyond the last.
  Heap* at(std::size_t number) const noexcept {
    const MutexLock lock(list_mutex_);
    return number < heaps_.size() ? heaps_[number].get() : nullptr;
  }
  /// The memory that a pool looks for: its own; what Pool::givesTo allows, too; or that of all
  /// pools.
  enum class From : std::uint8_t { kOwn, kGivers, kAll };
  /// How far a search has come, among the taker's own heaps and then among others.
  struct Search {
    const Pool& taker;
    From from;
    std::size_t own = 0;     ///< not of the default pool, whose heaps are among the others
    std::size_t number = 0;  ///< of the next heap to look at
  };
  /// The next heap of the search that may have memory for others; null at the end. A moment later
  /// it may belong to another pool.
  Heap* nextOffering(Search& search) const noexcept;
  /// Sets whether the heap may have something for others: yes when memory became free or came, no
  /// after a search in vain. Pre: its lock is held.
  void setOffering(Heap& heap, bool offers) noexcept CISTERN_REQUIRES(heap.mutex()) {
    heap.setWithdrawn(!offers);
    const MutexLock lock(list_mutex_);
    offering_[heap.number()] = offers;
  }
  /// The heap waits for another stream or pool. False when its pool is not draining; for a heap of
  /// the default pool, when its stream is not forgotten. False, too, when it holds something, as
  /// Heap::moveTo says.
  bool park(Heap& heap) noexcept;
  /// The memory of all heaps, and of those pools, comes in segments from now on. Pre: the pools are
  /// all there are, and no page has come to any. Throws std::bad_alloc, changing nothing.
  void leavePages(const std::vector<Pool*>& pools, const SizeRules& rules);
  /// Serialises what changes the table. Under it no heap is made.
  Mutex& mutex() const CISTERN_TSA(lock_returned(mutex_)) { return mutex_; }
  /// Is told of the blocks of heaps that are made from now on; null for none.
  void observe(Observer* observer) CISTERN_REQUIRES(mutex()) { observer_ = observer; }
  /// The host memory of the table, without that of the heaps.
  std::size_t hostBytes() const;
  /// Checks what is promised of heaps that offer something; aborts if it does not hold. Pre: the
  /// locks of `heaps`, which are all, are held.
  void audit(const std::vector<Heap*>& heaps) const;

 private:
  using Slots = std::vector<std::atomic<Heap*>>;  ///< a power of two of them, at most half full

  static std::size_t hashOf(Stream stream) {
    return std::size_t((stream.raw * 0x9E3779B97F4A7C15u) >> 32);
  }
  static void fill(Slots& slots, Heap* heap) noexcept;
  /// Whether the search is for memory of heaps of the pool.
  static bool reaches(const Search& search, const Pool& pool) {
    if (search.from == From::kAll) return true;
    const bool givers = search.from == From::kGivers;
    if (pool.isDefault()) return givers || search.taker.isDefault();
    return givers && pool.stage() == Pool::Stage::kDraining;
  }
  bool offers(const Heap& heap) const noexcept {
    const MutexLock lock(list_mutex_);
    return offering_[heap.number()] != 0;
  }
  void makeRoom() CISTERN_REQUIRES(mutex_);
  Heap& make(Pool& pool, Stream stream, bool overflow) CISTERN_REQUIRES(mutex_);
  /// False, changing nothing, unless the heap holds nothing.
  bool move(Heap& heap, Pool& to, Stream stream) noexcept CISTERN_REQUIRES(mutex_);
  Heap* takeParked(Pool& pool, Stream stream, bool overflow) noexcept CISTERN_REQUIRES(mutex_);

  Pool& default_pool_;
  Totals& totals_;
  Pool nowhere_;  ///< where parked heaps are that were not the default pool's
  std::atomic<Slots*> slots_;
  mutable Mutex mutex_{LockRank::kHeapTable};
  /// The table in use and those before it, which readers may look into still; two of a size.
  std::list<Slots> generations_ CISTERN_GUARDED_BY(mutex_);
  std::atomic<bool> any_overflow_{false};
  std::size_t used_slots_ CISTERN_GUARDED_BY(mutex_) = 0;  ///< those of other streams by now too
  /// The default pool's. There is room for all heaps.
  std::vector<Heap*> forgotten_ CISTERN_GUARDED_BY(mutex_);
  std::size_t next_forgotten_ CISTERN_GUARDED_BY(mutex_) = 0;
  Observer* observer_ CISTERN_GUARDED_BY(mutex_) = nullptr;
  /// All heaps by stream, of which one may have any number, and by their own number. Parked heaps
  /// are Heap::kNobodys.
  using ByStream = std::map<std::pair<std::uintptr_t, std::size_t>, Heap*>;
  ByStream by_stream_ CISTERN_GUARDED_BY(mutex_);
  mutable Mutex list_mutex_{LockRank::kHeapList};
  // Both by number; changed by writers alone.
  std::vector<std::unique_ptr<Heap>> heaps_ CISTERN_GUARDED_BY(list_mutex_);
  std::vector<std::uint8_t> offering_ CISTERN_GUARDED_BY(list_mutex_);  ///< 1: it offers something
};

}  // namespace cistern
