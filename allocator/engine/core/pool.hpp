// A pool: the heaps that share an identity. The engine keeps a pool's memory apart from others'.
// The folder pools/ decides when a pool begins and ends, and which requests are its.
//
//   live --(its last user lets go)--> draining --(its memory is gone)--> nowhere
//
// A draining pool's blocks stay valid and are freed into it; its free memory is anyone's. Records
// of pools are recycled, as heaps are, and never deleted before the allocator.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/ground/limit.hpp"
#include "allocator/engine/ground/observer.hpp"
#include "allocator/engine/ground/request.hpp"
#include "allocator/engine/heap/heap.hpp"
#include "cistern/segment_source.hpp"
#include "cistern/types.hpp"

namespace cistern {

class LiveCapture;

/// The options for the heaps of a pool with these rules.
inline HeapOptions heapOptionsOf(const SizeRules& rules, MemoryKind memory) {
  return {rules.splitRules(SizeKind::kSmall), rules.splitRules(SizeKind::kLarge), memory, {}};
}

/// Thread-safe; the lock is a leaf.
class Pool {
 public:
  enum class Stage : std::uint8_t { kNowhere, kLive, kDraining };

  /// The default pool of an allocator, or a record for others.
  Pool(bool is_default, const SizeRules& rules, MemoryKind memory)
      : default_(is_default), rules_(&rules), memory_(memory) {
    if (is_default) stage_ = Stage::kLive;
  }

  bool isDefault() const { return default_; }
  MempoolId_t id() const {
    const MutexLock lock(mutex_);
    return id_;
  }
  Stage stage() const { return stage_.load(std::memory_order_acquire); }
  /// Constant while the pool has memory. They are the allocator's own, made before any pool.
  const SizeRules& rules() const { return *rules_.load(std::memory_order_relaxed); }
  /// The options for its heaps. Only the default pool's heaps preserve the wilderness. Where
  /// private pools did so too, graphs that share one came to need up to 3.5 % more when they were
  /// captured in ascending order.
  HeapOptions heapOptions(bool overflow = false) const {
    HeapOptions options = heapOptionsOf(rules(), memory(overflow));
    options.small.preserve_wilderness &= isDefault();
    options.large.preserve_wilderness &= isDefault();
    options.pool = id();
    return options;
  }
  /// Of its heaps, or of those that lie beside them for overflow. Constant while the pool has
  /// memory.
  MemoryKind memory(bool overflow = false) const {
    return overflow ? MemoryKind::kOverflow : memory_.load(std::memory_order_relaxed);
  }
  bool onPages() const { return memory() != MemoryKind::kSegments; }
  /// Whether the program holds all of its memory where it is.
  bool isHeld() const { return holds_.load(std::memory_order_relaxed) > 0; }
  /// Adds or removes one such hold. Pre: the locks of both backings are held.
  void hold(int by) noexcept { holds_.fetch_add(by, std::memory_order_relaxed); }
  Location location() const { return locationOf(memory()); }
  std::shared_ptr<SegmentSource> source() const {
    if (default_) return nullptr;
    const MutexLock lock(mutex_);
    return traits_.source;
  }

  /// From nowhere to live. Pre: stage() == kNowhere.
  void open(MempoolId_t id, const PoolTraits& traits, const SizeRules& rules, MemoryKind memory);
  /// Its memory comes in segments from now on. Pre: its heaps already use segments, and no page
  /// ever came.
  void leavePages(const SizeRules& rules) noexcept {
    rules_ = &rules;
    memory_ = MemoryKind::kSegments;
  }
  /// With one_handle, each block is a malloc of the device's from now on. Returns the source of
  /// before, to be let go of without a lock. Pre: as above.
  std::shared_ptr<SegmentSource> leaveHandles() noexcept {
    const MutexLock lock(mutex_);
    return traits_.one_handle ? std::exchange(traits_.source, nullptr) : nullptr;
  }
  /// Changes the rules of a pool that has no heap yet. False when it has one.
  bool change(const SizeRules& rules, MemoryKind memory);
  void drain() { stage_.store(Stage::kDraining, std::memory_order_release); }
  /// Pre: draining, without heaps. Returns its traits, to be let go of without a lock.
  PoolTraits close();

  /// The stream's heap here, other than for overflow. Null if there is none, or if the stream is
  /// forgotten. Not for the default pool, whose heaps the table finds.
  Heap* find(Stream stream) const;
  /// The stream's heap here, or that of a forgotten stream with that handle; or null. The next
  /// stream with the handle gets the heap.
  Heap* heapWith(Stream handle, bool overflow = false) const;
  std::vector<Heap*> heaps() const {
    const MutexLock lock(mutex_);
    return heaps_;
  }
  /// What its blocks take, allocated or waiting for queued work. Takes the lock of each heap.
  std::uint64_t busyBytes() const {
    std::uint64_t bytes = 0;
    forEachHeap([&](Heap& heap) {
      const MutexLock lock(heap.mutex());
      bytes += heap.busyBytes();
    });
    return bytes;
  }
  /// Calls visit(Heap&) for each, without the lock. Heaps that come meanwhile are visited too. Pre:
  /// none goes meanwhile.
  template <class Visit>
  void forEachHeap(Visit visit) const {
    for (std::size_t i = 0; Heap* heap = heapAt(i); ++i) visit(*heap);
  }
  /// In the order in which they came; null beyond the last.
  Heap* heapAt(std::size_t index) const noexcept {
    const MutexLock lock(mutex_);
    return index < heaps_.size() ? heaps_[index] : nullptr;
  }
  /// The one that came last, or null.
  Heap* lastHeap() const noexcept {
    const MutexLock lock(mutex_);
    return heaps_.empty() ? nullptr : heaps_.back();
  }
  /// So that add() finds room once. Throws std::bad_alloc, changing nothing.
  void makeRoom();
  /// Pre: the stream has none here, and there is room.
  void add(Heap& heap) noexcept {
    const MutexLock lock(mutex_);
    heaps_.push_back(&heap);
  }
  /// Pre: it is here.
  void remove(Heap& heap) noexcept;

  /// The capture that is under way into this pool, or null.
  std::shared_ptr<LiveCapture> capture() const {
    const MutexLock lock(mutex_);
    return capture_;
  }
  void setCapture(std::shared_ptr<LiveCapture> capture) {
    const MutexLock lock(mutex_);
    capture_ = std::move(capture);
  }

  /// Whether the default pool may take from here rather than be out of memory, while it is live.
  /// PoolTable::setLends (core.hpp) changes it.
  std::atomic<bool> lends{false};
  bool lendsNow() const { return lends && stage() == Stage::kLive; }
  /// The most that its blocks may take (paths/pool_limit.cpp).
  std::atomic<std::uint64_t> limit{UINT64_MAX};

  /// Whether its memory is away for a while (allocator/sleep): it serves no request, and no
  /// capture, checkpoint or export. Changes under the page backing's lock, or to true before it is
  /// taken.
  std::atomic<bool> asleep{false};
  /// How often it was put to sleep. Whoever read it before a request knows after it whether the
  /// pool slept meanwhile, also if it is awake again.
  std::atomic<std::uint64_t> times_asleep{0};
  void putToSleep() noexcept {
    asleep = true;
    ++times_asleep;  // later: who finds the pool asleep has read a smaller number
  }

  /// A token keeps the pool from being closed. Code that works with the pool holds a copy.
  /// visited() says whether any copy exists. PoolUsers::mutex guards the first copy and this
  /// question, so no visitor comes between a no and the closing. A visitor lets go without the
  /// lock. The answer may then stay true for a moment, which is harmless: a later look closes the
  /// pool. The visitor's work was under other locks.
  std::shared_ptr<void> token() const { return token_; }
  bool visited() const { return token_.use_count() > 1; }

  /// Whether what lies wholly free here may move to a heap of `taker`. A private pool takes from
  /// the default pool and from draining pools. The default pool takes from a live one only if that
  /// lends and `last_resort`. HeapTable::reaches states the same rule for searches; change both.
  /// mayGive() adds that both heaps have pages of one kind.
  bool givesTo(const Pool& taker, bool last_resort) const {
    if (this == &taker || default_ || stage() == Stage::kDraining) return true;
    return last_resort && taker.default_ && lends.load(std::memory_order_relaxed);
  }

 private:
  const bool default_;
  std::atomic<Stage> stage_{Stage::kNowhere};
  std::atomic<const SizeRules*> rules_;
  std::atomic<MemoryKind> memory_;
  std::atomic<int> holds_{0};
  mutable Mutex mutex_{LockRank::kPool};
  MempoolId_t id_ CISTERN_GUARDED_BY(mutex_);
  PoolTraits traits_ CISTERN_GUARDED_BY(mutex_);
  std::vector<Heap*> heaps_ CISTERN_GUARDED_BY(mutex_);
  std::shared_ptr<LiveCapture> capture_ CISTERN_GUARDED_BY(mutex_);
  const std::shared_ptr<void> token_ = std::make_shared<char>();
};

inline MemoryKind memoryFor(const Request& request) {
  return request.pool->memory(request.overflow);
}

/// Whether what lies wholly free in a heap makes room for memory of that kind in a pool.
inline bool mayGive(const Heap& source, const Pool& to, MemoryKind kind, bool last_resort) {
  return shareRoom(source.memory(), kind) && source.pool().givesTo(to, last_resort);
}

/// "pool {0, 7} is asleep: wake it first".
std::string asleepText(const Pool& pool);

// ---- Requests that name no pool, and the hook through which they find one -----------------------

struct Route {
  Pool* pool = nullptr;                    ///< null: the default pool
  std::shared_ptr<LiveCapture> capture{};  ///< that the request is part of, if any
  std::uint32_t part = 0;                  ///< the number of the part of that capture
  std::shared_ptr<void> token{};           ///< the pool's, unless something else keeps it meanwhile
};

/// The hook through which such requests find their pool. The engine asks it only while it is set;
/// pools/ sets it while some scope or capture is active. Thread-safe.
class Router {
 public:
  virtual ~Router() = default;
  /// Which of them may catch a request: one that names its pool is caught by captures only.
  enum class Asked : std::uint8_t { kCapturesAndScopes, kCaptures };
  /// The route of a request of the calling thread on `stream`.
  virtual Route route(Stream stream, Asked asked) = 0;
};

// ---- The memory log -----------------------------------------------------------------------------

/// Notes an event of the heap's memory, which lies at `location`, while the log is on. If the host
/// is short of memory, the event is lost. `stays_mapped`: as MemoryEvent's.
inline void note(MemoryLog& log, MemoryAction action, Address address, std::uint64_t bytes,
                 const Heap& heap, Location location = Location::kDevice,
                 bool stays_mapped = false) noexcept {
  if (!log.on()) return;
  log.note({action, address, bytes, heap.stream(), heap.pool().id(), location, stays_mapped});
}

}  // namespace cistern
