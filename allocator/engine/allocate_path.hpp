// A request that the thread's cache does not serve at once (fast_path.hpp). It owns nothing.
//
//   allocate
//     the thread's cache, larger sizes and other streams   cache/thread_cache.hpp
//     allocateIn                  in one pool
//       serve                     under the heap's lock: remote frees, then the best fit
//         miss                    Fallbacks::serve, one step after another
//     allocateRouted              while some scope or capture is active
//       allocateCaptured          CaptureMemory::allocate, and the graph knows the address
//
// Thread-safe. Nothing here may be called with a heap's lock held.
#pragma once

#include "allocator/engine/free_path.hpp"

namespace cistern {

class AllocatePath {
 public:
  AllocatePath(Core& core, CrossStream& cross_stream, StreamHeaps& stream_heaps, PoolTable& pools,
               Fallbacks& fallbacks, CaptureMemory& captures, FreePath& free_path)
      : core_(core),
        cross_stream_(cross_stream),
        stream_heaps_(stream_heaps),
        pools_(pools),
        fallbacks_(fallbacks),
        captures_(captures),
        free_path_(free_path) {}

  /// CachingAllocator::allocate, which says what it throws.
  void* allocate(std::size_t bytes, Stream stream);
  /// The same in the pool given; in a capture's if one records the stream. Pre: the pool is live,
  /// and stays so meanwhile.
  void* allocate(std::size_t bytes, Stream stream, Pool& pool);

 private:
  Request requestOf(std::size_t bytes, Stream stream, Pool& pool);
  void* allocateIn(Pool& pool, std::size_t bytes, Stream stream);
  void* allocateRouted(std::size_t bytes, Stream stream, Pool* named);
  void* allocateCaptured(const Request& request);
  ThreadCache* cacheOf(Heap& heap) noexcept;
  void* serve(Heap& heap, ThreadCache* cache, const Request& request);
  Block* hit(Heap& heap, ThreadCache* cache, const Request& request)
      CISTERN_TSA(requires_capability(heap.mutex()));
  bool isTimeToPoll(Heap& heap) noexcept CISTERN_TSA(requires_capability(heap.mutex()));
  void* miss(const Request& request);

  Core& core_;
  CrossStream& cross_stream_;
  StreamHeaps& stream_heaps_;
  PoolTable& pools_;
  Fallbacks& fallbacks_;
  CaptureMemory& captures_;
  FreePath& free_path_;
};

}  // namespace cistern
