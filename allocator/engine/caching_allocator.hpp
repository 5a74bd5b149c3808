// The caching allocator of one device: the verbs.
//
// What a verb does is spread over one file a temperature: fast_path.cpp (the thread's own cache: no
// lock), heap_path.cpp (the stream's heap: no device call, no shared lock), slow_path.cpp (the
// ladder of a miss), reclaim.cpp (memory of other
// streams), accounting.cpp (statistics), taking_back.cpp (what is given back), lifetime.cpp,
// recorded_uses.cpp, pool_verbs.cpp (memory kept apart), recorded.cpp (during a graph capture).
// docs/life-of-an-allocation.md follows one request through them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "allocator/base/current.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/base/options.hpp"
#include "allocator/base/process.hpp"
#include "allocator/device/device.hpp"
#include "allocator/engine/cache/cache_table.hpp"
#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/event_pool.hpp"
#include "allocator/engine/heap_table.hpp"
#include "allocator/engine/hooks.hpp"
#include "allocator/engine/known_streams.hpp"
#include "allocator/engine/limit.hpp"
#include "allocator/engine/misuse.hpp"
#include "allocator/engine/out_of_memory.hpp"
#include "allocator/engine/pages/page_backing.hpp"
#include "allocator/engine/pending_frees.hpp"
#include "allocator/engine/pool.hpp"
#include "allocator/engine/progress.hpp"
#include "allocator/engine/recording/recording.hpp"
#include "allocator/engine/reports.hpp"
#include "allocator/engine/request.hpp"
#include "allocator/engine/router.hpp"
#include "allocator/engine/segment_map.hpp"
#include "allocator/engine/segment_records.hpp"
#include "allocator/engine/segments/segment_backing.hpp"
#include "allocator/engine/statistics.hpp"
#include "allocator/engine/statistics/totals.hpp"

namespace cistern {

/// What is cached at this moment, in bytes.
struct CacheInfo {
  std::uint64_t free_bytes = 0;
  std::uint64_t largest_free_block = 0;
};

/// A block that the program holds.
struct LiveBlock {
  Address address = 0;
  std::uint64_t bytes = 0;      ///< usable
  std::uint64_t requested = 0;  ///< as asked
  Stream stream;
  bool operator==(const LiveBlock&) const = default;
};

/// All verbs are thread-safe and may be called from any thread. No verb synchronises the device or
/// waits for a stream while another way to serve it exists.
class CachingAllocator {
 public:
  /// The device must outlive the allocator. Throws DeviceFailure when it cannot be asked for its
  /// memory, OptionError for a malformed CISTERN_CONF.
  explicit CachingAllocator(Device& device, const Options& options = Options::fromEnvironment());
  /// Gives everything back to the device, also what is still allocated. At process exit, when the
  /// driver may be gone, and in a child of fork leaks it on purpose. Pre: no other thread is in a
  /// verb or comes to one (docs/life-of-an-allocation.md, "The end of the process").
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  // ---- Memory ----------------------------------------------------------------------------------

  /// `bytes` of device memory for use on `stream`, 512-byte aligned; null for 0 bytes. Throws
  /// OutOfMemory (nothing has changed, apart from cached memory given back), InvalidArgument for a
  /// stream that is not alive, DeviceFailure when a stream that has the handle of a forgotten one
  /// cannot be ordered after its end.
  void* allocate(std::size_t bytes, Stream stream);
  /// The same on the calling thread's current stream of this device (current.hpp): the default
  /// stream, unless a StreamGuard says otherwise.
  void* allocate(std::size_t bytes) { return allocate(bytes, currentStream(device_.ordinal())); }
  /// Takes a block back. Null is a no-op. The block is reusable on its own stream at once, in
  /// stream order, and elsewhere when the work queued on it by now is complete. A pointer that is
  /// not an allocated block's is reported through the misuse hook and changes nothing.
  void free(void* pointer) noexcept;
  /// The block is also used on `stream`: after its free it is reusable only when the work queued
  /// there up to the free is complete. Ignored for the block's own stream. Throws InvalidArgument
  /// for a stream that is not alive, DeviceFailure as allocate does.
  void recordStream(void* pointer, Stream stream);
  /// The program is about to destroy the stream: call this before, once all its work is queued, for
  /// every stream that memory was allocated or recorded on, or a graph replayed on. The stream is
  /// not asked for anything any more. Blocks that it has used may be freed later too; its memory
  /// serves others when the work queued on it by now is complete. Nothing is waited for. A verb
  /// that names a stream with that handle afterwards means one that lives: the same, if it was not
  /// destroyed, or a new one that the driver gave the handle to; what is queued on it after that
  /// verb comes after all that was queued up to here. No-op for a stream that no verb has named.
  /// Pre: the stream is alive, and no other thread queues work on it, allocates or records on it
  /// meanwhile. Throws InvalidArgument for the default stream and for one that is being captured,
  /// DeviceFailure, std::bad_alloc; then nothing has changed.
  void forgetStream(Stream stream);

  /// Returns what is wholly free to the device: segments, or pages. Pages that queued work may
  /// still use follow by themselves when it is complete. Waits for the whole device only if blocks
  /// were freed, or graphs reset, whose uses nothing else can tell of: those on streams that were
  /// destroyed without forgetStream, or whose event the device refused.
  void emptyCache();

  // ---- Pools: what pools/ is built on. Programs use the verbs there.
  // -----------------------------

  Pool& defaultPool() { return default_pool_; }
  /// A new live pool. Throws std::bad_alloc, changing nothing.
  Pool& openPool(MempoolId_t id, const PoolTraits& traits);
  /// A pool's blocks take whole segments from now on. False when it has memory already.
  bool setNoSplit(Pool& pool);
  /// The pool's last user has let go: what lies free in it is anyone's from now on. Calls no
  /// observer.
  void drainPool(Pool& pool);
  /// Calls the observers of that. Pre: no lock is held.
  void tellPoolReleased(MempoolId_t id) noexcept { hooks_.poolReleased(id); }
  /// A pool that is gone, and what was special about it.
  struct ClosedPool {
    MempoolId_t id;
    PoolTraits traits;
  };
  /// Lets go of draining pools that hold no memory any more.
  std::vector<ClosedPool> closeDrainedPools();

  /// Keeps the router as long as the allocator lives: a request that was under way when another was
  /// set may come to it at any time.
  void keepRouter(std::shared_ptr<Router> router);
  /// Who says which pool a request goes to that names none. Null: all go to the default pool. The
  /// router is kept, or outlives requests that are under way.
  void setRouter(Router* router) {
    router_.store(router, std::memory_order_release);
    caches_.setRouted(router != nullptr);
  }
  /// Whether there is one.
  bool hasRouter() const { return routed(); }
  /// The pool that a request on the stream, by this thread, would go to now.
  MempoolId_t poolFor(Stream stream);
  /// allocate, in the pool given; in a capture's if one records the stream. Pre: the pool is live,
  /// and stays so meanwhile.
  void* allocate(std::size_t bytes, Stream stream, Pool& pool);
  /// emptyCache, of one pool.
  void emptyCache(Pool& pool);
  /// Gives free memory of the pool back until no more than `bytes` of it are reserved.
  void trim(Pool& pool, std::uint64_t bytes);

  /// Looked after by whoever keeps the pools. True if it let go of anything. Returns when no thread
  /// is in the one that was set before. Pre: nor is the caller.
  void setPoolTidier(std::function<bool(Tidying)> tidier) { hooks_.setTidier(std::move(tidier)); }

  /// From now on requests that the router gives the recording belong to a capture into its pool.
  void beginRecording(std::shared_ptr<Recording> recording, Stream origin);
  /// The capture is over. Returns what it has touched, which stays where it is until unpin.
  Pins endRecording(Recording& recording) noexcept;
  void unpin(Pins& pins) noexcept;

  /// The blocks held in the pool, by address; not what it has lent to the default pool.
  std::vector<LiveBlock> liveBlocks(const Pool& pool) const;
  /// Makes the blocks of `wanted` live in the pool, at their addresses, and no others. What their
  /// streams do from now on comes after all that was done with that memory. Throws PoolError,
  /// changing nothing, when some of it is not the pool's any more, that order cannot be had, a
  /// block that is to be made is for a stream that was forgotten and not named since, a capture
  /// into the pool is under way, or `wanted` is not what liveBlocks can have said. `freed`
  /// and `made` get what changed.
  void restore(Pool& pool, const std::vector<LiveBlock>& wanted, std::vector<void*>& freed,
               std::vector<void*>& made);
  /// What the pool holds at this moment: each `current`, and nothing else.
  MemoryStats::Values poolStats(const Pool& pool) const;

  // ---- Hooks. Each is called without a lock held, by the thread whose verb has come to it, and
  // may call every verb: of this allocator, of its pools, and those that add or replace hooks.
  // Several threads may call one at the same time. An empty function is refused (InvalidArgument),
  // but by setMisuseHook, for which it is the default one.

  /// Called when a pool's last user has let go, before the verb ends that saw it. It must not
  /// throw: that ends the process, as it may be called where a graph or a MemPool is destroyed.
  void attachPoolReleasedObserver(std::function<void(MempoolId_t)> observer) {
    hooks_.addPoolReleased(std::move(observer));
  }

  /// Called when memory is short; says whether it has freed something. What it allocates itself
  /// does not call it again. What it throws leaves the verb, which changed nothing.
  void registerReclaimCallback(std::function<bool()> callback) {
    hooks_.addReclaim(std::move(callback));
  }
  /// Called once for each OutOfMemory, before it is thrown; not for one that an observer meets
  /// itself. What it throws is thrown instead, and observers after it are not called.
  void attachOutOfMemoryObserver(std::function<void(const OutOfMemoryReport&)> observer) {
    hooks_.addOutOfMemory(std::move(observer));
  }
  /// Replaces the default hook (misuse.hpp). It must not throw: that ends the process, as a free
  /// does not throw.
  void setMisuseHook(MisuseHook hook) { hooks_.setMisuse(std::move(hook)); }

  // ---- Limits ----------------------------------------------------------------------------------

  /// The most that may be reserved, in bytes. What is reserved beyond it already stays until freed.
  void setLimit(std::uint64_t bytes);
  /// The same as a fraction of the device. Throws InvalidArgument unless 0 < fraction <= 1.
  void setMemoryFraction(double fraction);
  std::uint64_t limit() const { return limit_.limit(); }

  // ---- What there is ---------------------------------------------------------------------------

  /// What is current, allocated and freed is exact; of peaks, `peaks_exact` says whether they are.
  MemoryStats memoryStats() const;
  void resetPeakStats();
  void resetAccumulatedStats();
  CacheInfo cacheInfo() const;
  /// How many requests so far found no free block of their stream at hand. Unlike memoryStats() it
  /// takes no lock and leaves threads what they keep.
  std::uint64_t misses() const { return tick_.load(std::memory_order_relaxed); }
  Result<MemoryInfo> getMemoryInfo() { return device_.memoryInfo(); }
  /// The usable size of an allocated block. Throws InvalidArgument for any other pointer.
  std::size_t blockSize(void* pointer) const {
    return reports_.inspect("blockSize", toAddress(pointer)).bytes;
  }
  /// The segment, or the range of addresses in use, around an allocated block. Throws
  /// InvalidArgument for any other pointer.
  BaseAllocation getBaseAllocation(void* pointer) const {
    return reports_.inspect("getBaseAllocation", toAddress(pointer)).around;
  }
  const Options& options() const { return options_; }
  Device& device() { return device_; }
  /// For pools/, which keeps memory while streams use it.
  KnownStreams& knownStreams() { return streams_; }
  /// Walks every structure and checks every invariant; aborts on a broken one.
  void audit() const;

 private:
  // heap_path.cpp
  bool routed() const { return router_.load(std::memory_order_relaxed) != nullptr; }
  void* allocateOdd(std::size_t bytes, Stream stream);
  ThreadCache* cacheOf(Heap& heap) noexcept;
  Block* hit(Heap& heap, ThreadCache* cache, const Request& request)
      CISTERN_TSA(requires_capability(heap.mutex()));
  bool isTimeToPoll(Heap& heap) const noexcept CISTERN_TSA(requires_capability(heap.mutex()));
  enum class Parted : std::uint8_t { kCached, kFromProgram, kNotHeld };
  static Parted part(Heap& heap, ThreadCache* cache, Block& block, const void* caller) noexcept;
  RemoteFrees::Answer returnToOwner(Block& block, const ThreadCache* mine,
                                    const void* caller) noexcept;
  void freeOdd(void* pointer, const void* caller, Block* recent) noexcept;
  bool freeMine(ThreadCache& cache, Block& block, const void* caller) noexcept;
  void afterFree(Heap& heap, bool low_water, bool mark = false) noexcept;
  void freeToHeap(HeapSegment& segment, Heap& heap, Address address, Block* seen,
                  const void* caller) noexcept;
  void freeAt(Address address, const void* caller) noexcept;

  void* allocateRouted(std::size_t bytes, Stream stream, Pool* named);
  void* allocateUnrouted(std::size_t bytes, Stream stream, Pool& pool);
  Request requestOf(std::size_t bytes, Stream stream, Pool& pool);
  void* serve(Heap& heap, ThreadCache* cache, const Request& request);

  // recorded.cpp
  void* allocateRecorded(const Request& request);
  Block* fallBackRecorded(Heap& heap, const Request& request);
  void pinFor(Recording& recording, Block& block);
  void freeRecorded(Heap& heap, HeapSegment& segment, Address address, const void* caller,
                    std::uint32_t recorded) noexcept;
  void beginRecording(Heap& heap, std::uint32_t number);
  void endRecording(Heap& heap, std::uint32_t number) noexcept;

  // pool_verbs.cpp
  std::vector<Heap*> heapsOf(const Pool& pool) const;
  bool holdsNothing(Heap& heap);
  bool closeHeaps(Pool& pool) noexcept;
  bool anyLenders(const Request& request) const;
  Block* fromLenders(Heap& heap, const Request& request);
  static bool lends(const Pool& pool, const Request& request);
  Block* fromLender(Heap& owner, const Request& request);

  // pool_restore.cpp
  class Restoration;

  // slow_path.cpp: the fallbacks. Each step gives a block, or null.
  Block* fallBack(Heap& heap, const Request& request);
  void* allocateSlow(const Request& request);
  Block* search(Heap& heap, const Request& request);
  Block* afterEvents(Heap& heap, const Request& request);
  Block* afterCallbacks(Heap& heap, const Request& request);
  Block* afterGarbageCollection(Heap& heap, const Request& request);
  Block* underPressure(Heap& heap, const Request& request);
  Block* partsOfOthers(Heap& heap, const Request& request);
  Block* afterWaiting(Heap& heap, const Request& request);
  Block* afterPending(Heap& heap, const Request& request);
  bool waitForPools();
  Block* moreMemory(Heap& heap, const Request& request);
  Block* afterTheDevice(Heap& heap, const Request& request);
  Heap& heapFor(const Request& request);
  Heap& knownToCapture(Heap& heap);
  Heap* spareHeap();
  bool onPages(const Request& request) const { return request.pool->onPages(); }
  void auditAtTick() const;
  void requireLive(Stream stream);

  // reclaim.cpp
  void deferFree(Heap& heap, Block& block, const StreamUses& uses, bool captured = false) noexcept;
  void putBack(const PendingFrees::Pending& retired) noexcept;
  bool pollPending() noexcept;
  bool streamsAreIdle();
  enum class Reach : std::uint8_t { kIdleSegments, kPartsToo };
  Block* fromOtherHeaps(Heap& heap, const Request& request, Reach reach);
  Block* takeCompleted(Heap& owner, Heap& heap, const Request& request, Reach reach);
  static Block* fitting(Heap& owner, const Request& request, Reach reach, Epochs epochs)
      CISTERN_TSA(requires_capability(owner.mutex()));
  static bool mayLend(const Heap& owner, const Heap& heap) {
    return &owner != &heap && &owner.pool() == &heap.pool();
  }
  static bool mayInherit(const Heap& owner, const Heap& heap);
  Block* adopt(HeapSegment& segment, Heap& owner, Heap& heap, const Request& request);
  template <class MakeSafe>
  Block* loan(Heap& heap, const Request& request, MakeSafe made_safe);
  Block* loanInOrder(Heap& heap, const Request& request);
  Block* loanWhenIdle(Heap& heap, const Request& request);

  // lifetime.cpp
  static void forgetUses(const Segment& segment) noexcept;

  // accounting.cpp
  void auditHeaps() const;

  // taking_back.cpp
  bool flushCaches() noexcept;
  bool releaseFor(const Request& request);
  std::vector<Heap*> releasableFor(const Pool& pool) const;
  bool flushFilled(std::vector<Heap*>& heaps) CISTERN_REQUIRES(heaps_mutex_);
  void flushMine() noexcept;
  static bool isAtLowWater(Heap& heap) noexcept;
  void atLowWater(Heap& heap) noexcept;
  void goHome(Heap& heap) noexcept;

  // all_heaps.hpp
  template <class Visit>
  void withAllHeaps(Visit visit) const;

  // recorded_uses.cpp
  static bool noteUse(const Heap& heap, Block& block, Stream stream);

  Located locate(Address address) const noexcept { return cistern::locate(segments_, address); }
  [[noreturn]] void throwOutOfMemory(const Request& request);

  /// An allocator as it begins, with nothing taken from the device, and nothing asked of it.
  CachingAllocator(Device& device, const Options& options, CacheTable::Limits cache_limits);
  [[noreturn]] static void throwInherited();

  Device& device_;
  const Birthplace made_;
  const Options options_;
  const SizeRules rules_;
  const SizeRules segment_rules_;  ///< of pools whose memory comes in segments in any case
  const SizeRules whole_rules_;    ///< of pools that do not split
  Pool default_pool_;
  std::uint64_t device_total_ = 0;
  Limit limit_;
  std::atomic<std::uint64_t> tick_{0};  ///< misses so far: the clock that segments age by

  /// Where the next segment or range goes in the order of age: half way up what a block can say
  /// (2^57 bytes), so that there is room for 2^56 bytes of them on either side.
  std::atomic<Address> places_{Address{1} << 56};

  mutable Totals totals_;
  SegmentMap segments_;
  SegmentRecords records_;
  EventPool events_;
  HeapTable heaps_;
  CacheTable caches_;
  KnownStreams streams_;
  PendingFrees pending_;
  StreamProgress progress_;
  PinnedSegments pinned_segments_;
  SegmentBacking segment_backing_;
  std::atomic<Router*> router_{nullptr};

  /// Serialises what gives memory back to make room, so that two threads do not undo each other.
  Mutex pressure_mutex_;
  /// Serialises those who wait for queued work, so that none gives up while another has it.
  Mutex waiting_mutex_;
  /// Serialises those who hold several heaps' locks. Taken before them.
  mutable Mutex heaps_mutex_;

  /// Which pools there are. Before the backing's and heaps' locks.
  mutable Mutex pools_mutex_;
  std::vector<std::unique_ptr<Pool>> pools_ CISTERN_GUARDED_BY(pools_mutex_);
  std::vector<std::shared_ptr<Router>> routers_ CISTERN_GUARDED_BY(pools_mutex_);

  /// Null where all segments are device mallocs.
  std::unique_ptr<PageBacking> pages_;

  Hooks hooks_;
  Reports reports_;

  std::atomic<std::uint64_t> num_alloc_retries_{0};
  std::atomic<std::uint64_t> num_sync_all_streams_{0};
};

}  // namespace cistern
