// What happens when the thread's cache does not do it: find the heap, take the best free block
// under the heap's own lock, count it. No device call, no lock that another stream takes, nothing
// allocated on the host once the heap has its size. A miss is in slow_path.cpp.
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

// Larger blocks, and streams that the thread has used before the last one.
void* CachingAllocator::allocateOdd(std::size_t bytes, Stream stream) {
  if (bytes == 0) return nullptr;
  if (routed()) return allocateRouted(bytes, stream, nullptr);
  ThreadCache* const cache = caches_.mine(stream);
  if (cache == nullptr || !cache->heap().serves(stream)) [[unlikely]]
    return allocateUnrouted(bytes, stream, default_pool_);
  if (bytes <= ThreadCache::kMostBytes) [[likely]] {
    if (Block* const block = cache->takeAny(bytes)) {
      const Address address = deviceAddress(*block);
      cache->remember(address, *block);
      return toPointer(address);
    }
  }
  return serve(cache->heap(), cache, requestOf(bytes, stream, default_pool_));
}

inline Request CachingAllocator::requestOf(std::size_t bytes, Stream stream, Pool& pool) {
  if (bytes > kLargestRequest) [[unlikely]] {
    throwOutOfMemory({bytes, UINT32_MAX, SizeKind::kLarge, stream, &pool, nullptr, 0});
  }
  return pool.rules().request(bytes, stream, &pool);
}

// The calling thread's cache for a heap; null where there is to be none.
inline ThreadCache* CachingAllocator::cacheOf(Heap& heap) noexcept {
  if (!heap.pool().isDefault()) return nullptr;
  ThreadCache* const cache = caches_.mine(heap.stream());
  return cache ? cache : caches_.open(heap);
}

// A larger block that the cache has kept goes back first: it may be a neighbour of what is free. So
// does the rest where nothing free is large enough, one stack after another: it is still no miss.
inline Block* CachingAllocator::hit(Heap& heap, ThreadCache* cache, const Request& request) {
  if (cache == nullptr) return heap.allocate(request);
  if (cache->mayHave(request.bytes)) [[unlikely]] {
    if (Block* const cached = cache->takeLocked(request.bytes)) return cached;
  }
  if (request.granules > ThreadCache::kSmallGranules && cache->hasLast() &&
      !without(Mechanism::kLastBack))
    cache->flushLast();
  Block* block = heap.allocate(request);
  while (block == nullptr && !without(Mechanism::kStacksFirst) && cache->flushSome(request.kind))
    block = heap.allocate(request);
  if (block != nullptr) cache->own(*block);
  return block;
}

// Counts the heap's hits while anything waits.
inline bool CachingAllocator::isTimeToPoll(Heap& heap) const noexcept {
  return heap.counts().isTimeToPoll(options_.poll_interval *
                                    (without(Mechanism::kBackoff) ? 1 : pending_.backoff()));
}

inline void* CachingAllocator::serve(Heap& heap, ThreadCache* cache, const Request& request) {
  void* pointer = nullptr;
  bool poll = false;
  {
    const MutexLock lock(heap.mutex());
    if (const Block* block = hit(heap, cache, request)) [[likely]] {
      pointer = toPointer(deviceAddress(*block));
      poll = pending_.waiting() != 0 && isTimeToPoll(heap);
    }
  }
  if (pointer == nullptr) [[unlikely]]
    return allocateSlow(request);
  if (poll) [[unlikely]]
    pollPending();
  return pointer;
}

void* CachingAllocator::allocate(std::size_t bytes, Stream stream, Pool& pool) {
  if (bytes == 0) return nullptr;
  if (routed()) [[unlikely]]
    return allocateRouted(bytes, stream, &pool);
  return allocateUnrouted(bytes, stream, pool);
}

void* CachingAllocator::allocateUnrouted(std::size_t bytes, Stream stream, Pool& pool) {
  const Request request = requestOf(bytes, stream, pool);
  Heap* const heap = pool.isDefault() ? heaps_.find(stream) : pool.find(stream);
  return heap ? serve(*heap, cacheOf(*heap), request) : allocateSlow(request);
}

// A capture of the stream comes before the pool that a request names: only the capture's pool keeps
// in place what the graph will use. The route keeps the recording alive meanwhile.
void* CachingAllocator::allocateRouted(std::size_t bytes, Stream stream, Pool* named) {
  Router* const router = router_.load(std::memory_order_acquire);
  const Route route = router ? router->route(stream) : Route{};
  if (route.recording == nullptr) {
    Pool* const pool = named ? named : route.pool ? route.pool : &default_pool_;
    return allocateUnrouted(bytes, stream, *pool);
  }
  Request request = requestOf(bytes, stream, *route.pool);
  request.recording = route.recording.get();
  request.recorded_by = route.recording->numberOf(stream);
  return allocateRecorded(request);
}

// Larger blocks, those that the thread has had for longer, and those of other streams than the
// last. `recent`: the block, where the last cache knew it.
void CachingAllocator::freeOdd(void* pointer, const void* caller, Block* recent) noexcept {
  if (pointer == nullptr) return;
  if (recent != nullptr && CacheTable::last().giveAny(*recent, caller)) return;
  const Address address = toAddress(pointer);
  const auto [segment, heap] = locate(address);
  if (heap == nullptr) [[unlikely]]
    return reports_.misuse("free", address);
  // What is no block's address for sure is not looked for among records that others may be writing.
  Block* const block = address % kGranule == 0 ? heap->peek(*segment, address) : nullptr;
  ThreadCache* const cache = caches_.mine(heap->stream());
  if (block != nullptr && cache != nullptr && ownership::load(*block) == cache->heldByMe()) {
    if (block != recent && cache->giveAny(*block, caller)) return;
    if (block->granules > ThreadCache::kDirectGranules && !without(Mechanism::kExpectRelease))
      Layout::expectRelease(*block);
    if (freeMine(*cache, *block, caller)) return;
  } else if (block != nullptr) {
    switch (returnToOwner(*block, cache, caller)) {
      case RemoteFrees::Answer::kTaken:
        return;
      case RemoteFrees::Answer::kNotHeld:
        return reports_.misuse("free", address);
      case RemoteFrees::Answer::kNoRoom:
        break;
    }
  }
  freeToHeap(*segment, *heap, address, block, caller);
}

// A block of the thread's own cache, which had no place for it at once: it makes some, or the heap
// takes the block. False when there is more to it.
bool CachingAllocator::freeMine(ThreadCache& cache, Block& block, const void* caller) noexcept {
  Heap& heap = cache.heap();
  bool low_water = false, mark = false;
  {
    const MutexLock lock(heap.mutex());
    if (heap.completion().recorded() != 0 || ownership::load(block) != cache.heldByMe())
        [[unlikely]]
      return false;
    const WhoFreed who(caller, 0);
    if (!cache.accept(block, who)) {
      // Another thread that frees the block at the same moment, wrongly, is told so, or this one
      // is.
      const std::uint32_t mine = cache.heldByMe();
      if (!ownership::change(block, mine, ownership::moved(mine, ownership::Where::kRemoteFreed)))
        return false;
      cache.letGo(block, who);
      if (heap.lowWater().pagesMoved()) cache.noteFall();
    }
    low_water = heap.lowWater().isDue(heap.busyBytes() - cache.cachedBytes());
    mark = heap.completion().wantsMark(heap.layout(SizeKind::kLarge).segmentBytes());
  }
  if (low_water || mark) [[unlikely]]
    afterFree(heap, low_water, mark);
  return true;
}

void CachingAllocator::afterFree(Heap& heap, bool low_water, bool mark) noexcept {
  if (mark && driverMayBeCalled()) progress_.markFreed(heap);
  if (low_water && pages_) atLowWater(heap);
}

void CachingAllocator::freeAt(Address address, const void* caller) noexcept {
  const auto [segment, heap] = locate(address);
  if (heap == nullptr) return reports_.misuse("free", address);
  freeToHeap(*segment, *heap, address, nullptr, caller);
}

// Sends a block to the cache that it belongs to, if that is another thread's. The program gives the
// block back, so that its record stands still. Larger ones are kept only where no other thread uses
// the stream, as this one may: thread_cache.hpp.
RemoteFrees::Answer CachingAllocator::returnToOwner(Block& block, const ThreadCache* mine,
                                                    const void* caller) noexcept {
  const std::uint32_t holder = ownership::load(block);
  if (!ownership::isOwned(holder) || ownership::whereIs(holder) != ownership::Where::kHeld)
    return RemoteFrees::Answer::kNoRoom;
  if (block.granules > ThreadCache::kSmallGranules) return RemoteFrees::Answer::kNoRoom;
  if (mine != nullptr && holder == mine->heldByMe()) return RemoteFrees::Answer::kNoRoom;
  ThreadCache* const owner = caches_.owner(holder);
  if (owner == nullptr) return RemoteFrees::Answer::kNoRoom;
  // Counted before the owner can hand the block out again, so that no peak counts it twice.
  const SizeKind kind = segmentOf(block).kind;
  const Counts counted = Counts::block(block.bytes(), block.use.asked, -1);
  totals_.count(kind, counted, {});
  const auto answer = owner->giveBack(block, holder, WhoFreed(caller, threadNumber()));
  if (answer != RemoteFrees::Answer::kTaken) totals_.count(kind, -counted, {});
  return answer;
}

// The program lets go of a block: into the calling thread's cache after all, or to the heap, out of
// whosever cache it is.
CachingAllocator::Parted CachingAllocator::part(Heap& heap, ThreadCache* cache, Block& block,
                                                const void* caller) noexcept {
  const std::uint32_t holder = ownership::load(block);
  if (!ownership::isOwned(holder)) return Parted::kFromProgram;
  if (cache && holder == cache->heldByMe() && cache->accept(block, WhoFreed(caller, 0)))
    return Parted::kCached;
  if (ownership::whereIs(holder) != ownership::Where::kHeld) return Parted::kNotHeld;
  if (!ownership::change(block, holder, ownership::moved(holder, ownership::Where::kRemoteFreed)))
    return Parted::kNotHeld;
  ownership::leaveToHeap(block, heap.stream());
  return Parted::kFromProgram;
}

// `seen`: the block at the address, as it was looked up without the lock; or null.
void CachingAllocator::freeToHeap(HeapSegment& segment, Heap& heap, Address address, Block* seen,
                                  const void* caller) noexcept {
  ThreadCache* const cache = heap.pool().isDefault() ? caches_.mine(heap.stream()) : nullptr;
  Block* block = nullptr;
  bool pending = false, low_water = false, mark = false;
  std::uint32_t recorded = 0;
  StreamUses uses;
  {
    const MutexLock lock(heap.mutex());
    block = heap.find(segment, address, seen);
    recorded = heap.completion().recorded();
    Parted parted = Parted::kNotHeld;
    if (block != nullptr && recorded == 0) [[likely]] {
      parted = part(heap, cache, *block, caller);
      if (parted == Parted::kNotHeld) block = nullptr;
    }
    if (parted == Parted::kFromProgram) [[likely]] {
      heap.frees().note(address, block->granules, caller, threadNumber());
      if (block->use.uses == nullptr && block->use.stream == heap.stream()) [[likely]] {
        heap.release(*block, tick_.load(std::memory_order_relaxed));
        if (cache != nullptr && heap.lowWater().pagesMoved()) cache->noteFall();
      } else {
        pending = true;
        uses = heap.setPending(*block);
      }
    }
    if (block != nullptr && recorded == 0 && !pending) {
      low_water = heap.lowWater().isDue(heap.busyBytes());
      mark = heap.completion().wantsMark(heap.layout(SizeKind::kLarge).segmentBytes());
    }
  }
  if (block == nullptr) [[unlikely]]
    return reports_.misuse("free", address);
  if (recorded != 0) [[unlikely]]
    return freeRecorded(heap, segment, address, caller, recorded);
  if (pending) [[unlikely]]
    return deferFree(heap, *block, uses);
  afterFree(heap, low_water, mark);
}

}  // namespace cistern
