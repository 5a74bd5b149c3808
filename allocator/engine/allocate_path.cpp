#include "allocator/engine/allocate_path.hpp"

namespace cistern {

inline Request AllocatePath::requestOf(std::size_t bytes, Stream stream, Pool& pool) {
  if (bytes > kLargestRequest) [[unlikely]] {
    fallbacks_.throwOutOfMemory({bytes, UINT32_MAX, SizeKind::kLarge, stream, &pool, nullptr, 0});
  }
  return pool.rules().request(bytes, stream, &pool);
}

// The calling thread's cache for a heap; null where there is to be none.
inline ThreadCache* AllocatePath::cacheOf(Heap& heap) noexcept {
  if (!heap.pool().isDefault()) return nullptr;
  ThreadCache* const cache = core_.caches.mine(heap.stream());
  return cache ? cache : core_.caches.open(heap);
}

// A larger block that the cache has kept goes back first: it may be a neighbour of what is free. So
// does the rest where nothing free is large enough, one stack after another: it is still no miss.
inline Block* AllocatePath::hit(Heap& heap, ThreadCache* cache, const Request& request) {
  if (cache == nullptr) return heap.allocate(request);
  if (cache->mayHave(request.bytes)) [[unlikely]] {
    if (Block* const cached = cache->takeLocked(request.bytes)) return cached;
  }
  if (request.granules > CacheBins::kSmallGranules && cache->blocks().hasLast() &&
      !without(Mechanism::kLastBack))
    cache->blocks().flushLast();
  Block* block = heap.allocate(request);
  while (block == nullptr && !without(Mechanism::kStacksFirst) &&
         cache->blocks().flushSome(request.kind))
    block = heap.allocate(request);
  if (block != nullptr) cache->blocks().own(*block);
  return block;
}

// Counts the heap's hits while anything waits.
inline bool AllocatePath::isTimeToPoll(Heap& heap) noexcept {
  const unsigned backoff = without(Mechanism::kBackoff) ? 1 : cross_stream_.pending().backoff();
  return heap.counts().isTimeToPoll(core_.options.poll_interval * backoff);
}

inline void* AllocatePath::serve(Heap& heap, ThreadCache* cache, const Request& request) {
  void* pointer = nullptr;
  bool poll = false;
  {
    const MutexLock lock(heap.mutex());
    if (const Block* block = hit(heap, cache, request)) [[likely]] {
      pointer = toPointer(deviceAddress(*block));
      poll = cross_stream_.pending().waiting() != 0 && isTimeToPoll(heap);
    }
  }
  if (pointer == nullptr) [[unlikely]]
    return miss(request);
  if (poll) [[unlikely]]
    cross_stream_.pending().poll();
  return pointer;
}

void* AllocatePath::allocate(std::size_t bytes, Stream stream) {
  if (bytes == 0) return nullptr;
  if (pools_.routed()) return allocateRouted(bytes, stream, nullptr);
  ThreadCache* const cache = core_.caches.mine(stream);
  if (cache == nullptr || !cache->heap().serves(stream)) [[unlikely]]
    return allocateIn(core_.default_pool, bytes, stream);
  if (bytes <= CacheBins::kMostBytes) [[likely]] {
    if (Block* const block = cache->takeAny(bytes)) {
      const Address address = deviceAddress(*block);
      cache->recents().remember(address, *block);
      return toPointer(address);
    }
  }
  return serve(cache->heap(), cache, requestOf(bytes, stream, core_.default_pool));
}

void* AllocatePath::allocate(std::size_t bytes, Stream stream, Pool& pool) {
  if (bytes == 0) return nullptr;
  if (pools_.routed()) [[unlikely]]
    return allocateRouted(bytes, stream, &pool);
  return allocateIn(pool, bytes, stream);
}

void* AllocatePath::allocateIn(Pool& pool, std::size_t bytes, Stream stream) {
  const Request request = requestOf(bytes, stream, pool);
  Heap* const heap = pool.isDefault() ? core_.heaps.find(stream) : pool.find(stream);
  return heap ? serve(*heap, cacheOf(*heap), request) : miss(request);
}

// A capture of the stream comes before the pool that a request names: only the capture's pool keeps
// in place what the graph will use. The route keeps the recording alive meanwhile.
void* AllocatePath::allocateRouted(std::size_t bytes, Stream stream, Pool* named) {
  const Route route = pools_.route(stream);
  if (route.recording == nullptr) {
    Pool* const pool = named ? named : route.pool ? route.pool : &core_.default_pool;
    return allocateIn(*pool, bytes, stream);
  }
  Request request = requestOf(bytes, stream, *route.pool);
  request.recording = route.recording.get();
  request.recorded_by = route.recording->numberOf(stream);
  return allocateCaptured(request);
}

// When the host has no memory to note the pin, the block is free again, as if it had never been
// found.
void* AllocatePath::allocateCaptured(const Request& request) {
  Block& block = captures_.allocate(request);
  const Address address = deviceAddress(block);
  try {
    captures_.pin(*request.recording, block);
  } catch (...) {
    free_path_.freeAt(address, nullptr);
    throw;
  }
  return toPointer(address);
}

void* AllocatePath::miss(const Request& request) {
  if (!core_.made.isHere()) {
    throw Error(
        "allocate: this allocator was made before a fork, and is the parent process': a child "
        "makes its own, or only exits");
  }
  if (request.rounded() > core_.device_total) fallbacks_.throwOutOfMemory(request);
  return toPointer(deviceAddress(fallbacks_.serve(stream_heaps_.of(request), request)));
}

}  // namespace cistern
