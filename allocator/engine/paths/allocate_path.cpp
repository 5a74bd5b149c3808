#include <bit>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/ablation.hpp"
#include "allocator/engine/capture/live_capture.hpp"
#include "allocator/engine/errors/engine_errors.hpp"
#include "allocator/engine/paths/fast_path.hpp"
#include "allocator/engine/paths/slow_path.hpp"

namespace cistern::slow_path {
namespace {

inline Request requestOf(Engine& engine, std::size_t bytes, Stream stream, Pool& pool) {
  if (bytes > kLargestRequest) [[unlikely]]
    throwOutOfMemory(engine, {bytes, UINT32_MAX, SizeKind::kLarge, stream, &pool});
  return pool.rules().request(bytes, stream, &pool);
}

// A larger block that the cache has kept goes back first: it may be a neighbour of what is free. So
// does the rest where nothing free is large enough, one stack after another: it is still no miss.
// `elsewhere`: see Heap::allocateAsBefore.
template <bool kAligned>
inline Block* hit(Heap& heap, ThreadCache* cache, const Request& request, bool& elsewhere)
    CISTERN_REQUIRES(heap.mutex()) {
  const auto asBefore = [&] {
    heap.mutex().assertHeld();
    return kAligned ? heap.alignedAsBefore(request, elsewhere)
                    : heap.allocateAsBefore(request, elsewhere);
  };
  if (cache == nullptr) return asBefore();
  if (cache->mayHave(request.bytes)) [[unlikely]] {
    const Block* const next = kAligned ? cache->nextLocked(request.bytes) : nullptr;
    if (!kAligned || (next != nullptr && isAligned(*next, request))) {
      if (Block* const cached = cache->takeLocked(request.bytes)) return cached;
    }
  }
  if (request.granules > CacheSizes::kSmall && !without(Mechanism::kLastBack))
    cache->blocks().flushLast();
  Block* block = asBefore();
  while (block == nullptr && !elsewhere && !without(Mechanism::kStacksFirst) &&
         cache->blocks().flushSome(request.kind))
    block = heap.allocate(request);
  // A cache counts a block by its size: a small one that is aligned may lie in large memory.
  const bool may_own = !kAligned || CacheSizes::kindOf(request.granules) == request.kind;
  if (block != nullptr && may_own) cache->blocks().own(*block);
  return block;
}

// Counts the heap's hits while anything waits.
inline bool isTimeToPoll(Engine& engine, Heap& heap) noexcept CISTERN_REQUIRES(heap.mutex()) {
  const unsigned backoff = without(Mechanism::kBackoff) ? 1 : engine.pending.backoff();
  if (++heap.hits_unpolled < PendingFrees::kHitsPerPoll * backoff) return false;
  heap.hits_unpolled = 0;
  return true;
}

// Every first user of a heap that is made while a capture into its pool is under way passes here.
inline Heap& knownToCapture(Heap& heap) {
  if (heap.pool().isDefault()) return heap;
  if (const std::shared_ptr<LiveCapture> capture = heap.pool().capture()) capture->learn(heap);
  return heap;
}

// A heap whose stream is forgotten and that holds nothing any more is there for another. A few are
// looked at.
void parkForgotten(Engine& engine) {
  constexpr int kLooks = 2;
  for (int i = 0; i < kLooks; ++i) {
    Heap* const heap = engine.heaps.nextForgotten();
    if (heap == nullptr || (engine.progress.holdsNothing(*heap) && engine.heaps.park(*heap)))
      return;
  }
}

// The device's memory says nothing of the host's.
void refuseBeyondDevice(Engine& engine, const Request& request) {
  if (request.rounded() > engine.device_total && request.rounded() > engine.mostFor(*request.pool))
      [[unlikely]]
    throwOutOfMemory(engine, request);
}

// `searched`: the heap that has nothing for the request, or null. It may have been parked since, or
// be another stream's by now.
Block& miss(Engine& engine, Heap* searched, const Request& request) {
  refuseBeyondDevice(engine, request);
  const bool still =
      searched != nullptr && searched->isFor(request.stream) && &searched->pool() == request.pool;
  Heap& heap = still ? knownToCapture(*searched) : heapFor(engine, request);
  return fallBack(engine, heap, request, still);
}

// Pre: the process is the engine's. In a child of fork a lock may be one that no thread releases.
template <bool kAligned = false>
inline Block& allocateFrom(Engine& engine, Heap& heap, ThreadCache* cache, const Request& request) {
  Block* block = nullptr;
  bool poll = false, elsewhere = false;
  {
    const MutexLock lock(heap.mutex());
    block = hit<kAligned>(heap, heap.isObserved() ? nullptr : cache, request, elsewhere);
    poll = block != nullptr && engine.pending.waiting() != 0 && isTimeToPoll(engine, heap);
  }
  if (elsewhere) [[unlikely]]
    block = engine.pages.placeAsBefore(heap, request);
  if (block == nullptr) [[unlikely]]
    return miss(engine, &heap, request);
  if (poll) [[unlikely]]
    engine.pending.poll(PendingFrees::kHits);
  return *block;
}

inline void* pointerTo(const Block& block) { return toPointer(deviceAddress(block)); }

template <bool kAligned>
Block& allocateInPool(Engine& engine, Heap* heap, const Request& request) {
  const bool limited = request.pool->limit != UINT64_MAX;
  if (limited) [[unlikely]]
    requireRoomWithin(engine, request);
  Block& block = heap ? allocateFrom<kAligned>(engine, *heap, nullptr, request)
                      : miss(engine, nullptr, request);
  return limited ? keptWithin(engine, request, block) : block;
}

template <bool kAligned = false>
Block& allocateIn(Engine& engine, const Request& request) {
  Heap* const heap = engine.heaps.find(*request.pool, request.stream);
  if (!request.pool->isDefault()) return allocateInPool<kAligned>(engine, heap, request);
  if (heap == nullptr) return miss(engine, nullptr, request);
  ThreadCache* const cache = engine.caches.mine(heap->stream());
  return allocateFrom<kAligned>(engine, *heap, cache ? cache : engine.caches.open(*heap), request);
}

Block& allocateIn(Engine& engine, Pool& pool, std::size_t bytes, Stream stream) {
  engine.made.requireHere("allocate");
  return allocateIn(engine, requestOf(engine, bytes, stream, pool));
}

// A capture of the stream comes before the pool that a request names: only the capture's pool keeps
// in place what the graph will use. The route keeps the capture alive meanwhile.
inline Route routeOf(Engine& engine, Stream stream, Pool* named) {
  Route route = engine.pools.route(
      stream, named ? Router::Asked::kCaptures : Router::Asked::kCapturesAndScopes);
  if (route.capture == nullptr && named != nullptr) route.pool = named;
  if (route.pool == nullptr) route.pool = &engine.default_pool;
  return route;
}

// When the host has no memory to note the hold, the block is free again, as if it had never been
// found.
inline void* allocateCaptured(Engine& engine, Request&& request, const Route& route) {
  request.capture = route.capture.get();
  request.part = route.part;
  refuseBeyondDevice(engine, request);
  const bool limited = request.pool->limit != UINT64_MAX;
  if (limited) [[unlikely]]
    requireRoomWithin(engine, request);
  Heap& heap = heapFor(engine, request);
  Block* block = nullptr;
  {
    const MutexLock lock(heap.mutex());
    block = heap.allocate(request);
  }
  if (block == nullptr) block = &fallBack(engine, heap, request, true);
  if (limited) [[unlikely]]
    (void)keptWithin(engine, request, *block);
  void* const pointer = pointerTo(*block);
  try {
    liveCaptureOf(request).bind(*block);
  } catch (...) {
    freeAt(engine, toAddress(pointer), nullptr);
    throw;
  }
  return pointer;
}

void* allocateRouted(Engine& engine, std::size_t bytes, Stream stream, Pool* named) {
  engine.made.requireHere("allocate");
  const Route route = routeOf(engine, stream, named);
  if (route.capture == nullptr) return pointerTo(allocateIn(engine, *route.pool, bytes, stream));
  return allocateCaptured(engine, requestOf(engine, bytes, stream, *route.pool), route);
}

// Caches have nothing meanwhile.
[[gnu::noinline]] void* allocateObserved(Engine& engine, std::size_t bytes, Stream stream,
                                         Pool* named) {
  engine.made.requireHere("allocate");
  const OriginScope origin(engine.observer->originOfRequest());
  return allocateRouted(engine, bytes, stream, named);
}

// ---- Alignment ----------------------------------------------------------------------------------

void requireAlignment(std::size_t alignment) {
  if (std::has_single_bit(alignment) && alignment <= kMostAlignment) return;
  throw InvalidArgument(
      fmt::format("allocate: the alignment is {}: it must be a power of two, up to {}", alignment,
                  kMostAlignment));
}

void* allocateAligned(Engine& engine, Request request, const Route& route) {
  return route.capture == nullptr ? pointerTo(allocateIn<true>(engine, request))
                                  : allocateCaptured(engine, std::move(request), route);
}

// A free segment of the pool that lies right.
Block* alignedSegment(Engine& engine, const Request& request) {
  Heap* const heap = engine.heaps.find(*request.pool, request.stream);
  if (heap == nullptr) return nullptr;
  const MutexLock lock(heap->mutex());
  return heap->allocate(request);
}

// Each block of such a pool has a segment, which begins where the device or the source puts it.
void* allocateWhole(Engine& engine, const Request& request, const Route& route,
                    std::size_t alignment) {
  if (route.capture == nullptr) {
    const bool limited = request.pool->limit != UINT64_MAX;
    if (limited) requireRoomWithin(engine, request);
    if (Block* const block = alignedSegment(engine, aligned(request, alignment)))
      return pointerTo(limited ? keptWithin(engine, request, *block) : *block);
  }
  void* const pointer = allocateAligned(engine, request, route);
  if ((toAddress(pointer) & (alignment - 1)) == 0) return pointer;
  freeAt(engine, toAddress(pointer), nullptr);
  throw InvalidArgument(
      fmt::format("allocate: the pool has a segment for each block (no_split), and the one for "
                  "this came to {:#x}, which is not aligned to {}",
                  toAddress(pointer), alignment));
}

}  // namespace

// A stream that is seen for the first time, or again after it was forgotten, must be alive.
Heap& heapFor(Engine& engine, const Request& request) {
  Pool& pool = *request.pool;
  if (Heap* const heap = engine.heaps.find(pool, request.stream)) return knownToCapture(*heap);
  engine.meet(request.stream);
  if (pool.isDefault()) parkForgotten(engine);
  return knownToCapture(engine.heaps.findOrMake(pool, request.stream));
}

void* allocate(Engine& engine, std::size_t bytes, Stream stream) {
  if (bytes == 0) return nullptr;
  if (engine.observed.load(std::memory_order_relaxed)) [[unlikely]]
    return allocateObserved(engine, bytes, stream, nullptr);
  if (engine.pools.routed()) return allocateRouted(engine, bytes, stream, nullptr);
  ThreadCache* const cache = engine.caches.mine(stream);
  if (cache == nullptr || !cache->heap().isFor(stream)) [[unlikely]]
    return pointerTo(allocateIn(engine, engine.default_pool, bytes, stream));
  return fast_path::allocate<fast_path::AllSizes>(
      *cache, fast_path::Known{}, bytes, stream, [](void* pointer) { return pointer; },
      [&] {
        engine.made.requireHere("allocate");
        return pointerTo(allocateFrom(engine, cache->heap(), cache,
                                      requestOf(engine, bytes, stream, engine.default_pool)));
      });
}

void* allocateAligned(Engine& engine, std::size_t bytes, Stream stream, Pool* named,
                      std::size_t alignment) {
  requireAlignment(alignment);
  if (bytes == 0) return nullptr;
  if (alignment <= kGranule)
    return named ? allocate(engine, bytes, stream, *named) : allocate(engine, bytes, stream);
  engine.made.requireHere("allocate");
  std::optional<OriginScope> origin;
  if (engine.observed.load(std::memory_order_relaxed)) [[unlikely]]
    origin.emplace(engine.observer->originOfRequest());
  const Route route = routeOf(engine, stream, named);
  const Request request = requestOf(engine, bytes, stream, *route.pool);
  return route.pool->rules().noSplit()
             ? allocateWhole(engine, request, route, alignment)
             : allocateAligned(engine, aligned(request, alignment), route);
}

void* allocate(Engine& engine, std::size_t bytes, Stream stream, Pool& pool) {
  if (bytes == 0) return nullptr;
  if (engine.observed.load(std::memory_order_relaxed)) [[unlikely]]
    return allocateObserved(engine, bytes, stream, &pool);
  if (engine.pools.routed()) [[unlikely]]
    return allocateRouted(engine, bytes, stream, &pool);
  return pointerTo(allocateIn(engine, pool, bytes, stream));
}

}  // namespace cistern::slow_path
