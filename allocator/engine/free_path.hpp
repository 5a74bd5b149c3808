// A free that the thread's cache does not take at once (fast_path.hpp). It owns nothing.
//
//   free
//     the thread's cache, larger sizes        cache/thread_cache.hpp
//     freeMine          the cache makes room, or its heap takes the block
//     sendToOwner       a message to the cache of another thread        cache/remote_frees.hpp
//     freeToHeap        under the heap's lock
//       CaptureMemory::free      in a capture into the heap's pool
//       CrossStream::deferFree   other streams still use the block
//     Flusher::afterFree         what is due afterwards, with no lock held
//
// Thread-safe. Nothing here may be called with a heap's lock held.
#pragma once

#include "allocator/engine/capture/capture_memory.hpp"

namespace cistern {

class FreePath {
 public:
  FreePath(Core& core, Flusher& flusher, CrossStream& cross_stream, CaptureMemory& captures)
      : core_(core), flusher_(flusher), cross_stream_(cross_stream), captures_(captures) {}

  /// Takes a block back. `recent`: the block, where the thread's last cache knew it; or null.
  void free(void* pointer, const void* caller, Block* recent) noexcept;
  /// The same of a block that was not looked up in the caches.
  void freeAt(Address address, const void* caller) noexcept;

 private:
  enum class Parted : std::uint8_t { kCached, kFromProgram, kNotHeld };
  /// What has become of a free under the heap's lock.
  struct Freed {
    /// In: the block that was found without the lock, or null. Out: the freed block; null if it is
    /// not allocated.
    Block* block = nullptr;
    bool pending = false;
    Heap::Due due;
    std::uint32_t recorded = 0;
    StreamUses uses;
  };

  bool freeMine(ThreadCache& cache, Block& block, const void* caller) noexcept;
  RemoteFrees::Answer sendToOwner(Block& block, const ThreadCache* mine,
                                  const void* caller) noexcept;
  void freeToHeap(HeapSegment& segment, Heap& heap, Address address, Block* seen,
                  const void* caller) noexcept;
  void freeLocked(HeapSegment& segment, Heap& heap, Address address, const void* caller,
                  Freed& freed) noexcept CISTERN_REQUIRES(heap.mutex());
  static Parted part(Heap& heap, ThreadCache* cache, Block& block, const void* caller) noexcept;

  Core& core_;
  Flusher& flusher_;
  CrossStream& cross_stream_;
  CaptureMemory& captures_;
};

}  // namespace cistern
