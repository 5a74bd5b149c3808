// What happens when memory is there: find the heap, take the best free block under the heap's own
// lock, count it. No device call, no lock that another stream takes, nothing allocated on the host
// once the heap has its size. Everything else is in slow_path.cpp.
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

void* CachingAllocator::allocate(std::size_t bytes, Stream stream) {
  if (bytes == 0) return nullptr;
  if (router_.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    return allocateRouted(bytes, stream, nullptr);
  const Request request = requestOf(bytes, stream, default_pool_);
  return serve(heaps_.find(stream), request);
}

inline Request CachingAllocator::requestOf(std::size_t bytes, Stream stream, Pool& pool) {
  if (bytes > kLargestRequest) [[unlikely]] {
    throwOutOfMemory({bytes, UINT32_MAX, SizeKind::kLarge, stream, &pool, nullptr, 0});
  }
  return pool.rules().request(bytes, stream, &pool);
}

inline void* CachingAllocator::serve(Heap* heap, const Request& request) {
  if (heap == nullptr) [[unlikely]]
    return allocateSlow(request);
  void* pointer = nullptr;
  bool over_ceiling = false, poll = false;
  {
    const MutexLock lock(heap->mutex());
    if (const Block* block = heap->allocate(request)) [[likely]] {
      pointer = toPointer(deviceAddress(*block));
      over_ceiling = heap->counters().overCeiling(request.kind);
      poll = pending_.waiting() != 0 && ++heap->hits_unpolled >= options_.poll_interval;
      if (poll) heap->hits_unpolled = 0;
    }
  }
  if (pointer == nullptr) [[unlikely]]
    return allocateSlow(request);
  if (over_ceiling || poll) [[unlikely]]
    afterHit(*heap, over_ceiling, poll);
  return pointer;
}

void* CachingAllocator::allocate(std::size_t bytes, Stream stream, Pool& pool) {
  if (bytes == 0) return nullptr;
  if (router_.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    return allocateRouted(bytes, stream, &pool);
  return allocateUnrouted(bytes, stream, pool);
}

void* CachingAllocator::allocateUnrouted(std::size_t bytes, Stream stream, Pool& pool) {
  const Request request = requestOf(bytes, stream, pool);
  return serve(pool.isDefault() ? heaps_.find(stream) : pool.find(stream), request);
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
  request.recorded_by = route.recording->number();
  return allocateRecorded(request);
}

void CachingAllocator::afterHit(Heap& heap, bool over_ceiling, bool poll) noexcept {
  if (over_ceiling) settleFor(heap);
  try {
    if (poll) pollPending();
  } catch (const std::bad_alloc&) {
    // The host is short of memory: a later poll does it.
  }
}

void CachingAllocator::atLowTide(Heap& heap) noexcept {
  try {
    pages_->sendHome(heap);
  } catch (const std::bad_alloc&) {
    // The host is short of memory: pages stay where they are.
  }
}

void CachingAllocator::free(void* pointer) noexcept {
  if (pointer != nullptr) freeAt(toAddress(pointer), __builtin_return_address(0));
}

void CachingAllocator::freeAt(Address address, const void* caller) noexcept {
  const auto [segment, heap] = locate(address);
  if (heap == nullptr) [[unlikely]]
    return reportMisuse("free", address);
  Block* block = nullptr;
  bool over_ceiling = false, retired = false, low_tide = false, recorded = false;
  StreamUses uses;
  {
    const MutexLock lock(heap->mutex());
    block = heap->find(*segment, address);
    recorded = heap->recorded;
    if (block != nullptr && !recorded) [[likely]] {
      heap->frees.note(address, block->grains, caller, threadNumber());
      if (block->use.uses == nullptr && block->use.stream == heap->stream()) [[likely]] {
        const SizeKind kind = segment->kind;
        heap->release(*block, tick_.load(std::memory_order_relaxed));
        over_ceiling = heap->counters().overCeiling(kind);
        low_tide = heap->tide.fall(heap->busyBytes()) && heap->pages_moved;
      } else {
        retired = true;
        uses = heap->retire(*block);
      }
    }
  }
  if (block == nullptr) [[unlikely]]
    return reportMisuse("free", address);
  if (recorded) [[unlikely]]
    return freeRecorded(*heap, *segment, address, caller);
  if (retired) [[unlikely]]
    return settleRetired(*heap, *block, std::move(uses));
  if (over_ceiling) [[unlikely]]
    settleFor(*heap);
  if (low_tide && pages_) [[unlikely]]
    atLowTide(*heap);
}

}  // namespace cistern
