// Cistern as a memory resource of cuda::mr, for CUB, Thrust, cuda::buffer, RMM and whatever else
// takes one. It stands beside include/cistern, not in it. It needs the headers of CCCL (3.0 or
// later, part of the CUDA toolkit 13). Those of Cistern proper need only the standard library's.
//
//   rmm::mr::set_current_device_resource(cistern::MemoryResource{});
//
// CCCL 3.1 renamed the verbs. `resource`, `allocate` and `deallocate` now take a stream; before,
// `async_resource`, `allocate_async` and `deallocate_async` did. The class has both sets, so that
// it satisfies the concepts of every version. docs/cookbook.md has programs.
#pragma once

// CCCL 3.0 has its resources behind this macro; later versions need no macro.
#ifndef LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#endif

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include <cuda/memory_resource>
#include <cuda/stream_ref>

#include "cistern/memory.hpp"
#include "cistern/report.hpp"

#pragma push_macro("Status")  // as in status.hpp
#undef Status

namespace cistern {

/// An OutOfMemory as users of cuda::mr catch it. Copies share the report.
class ResourceOutOfMemory : public std::bad_alloc {
 public:
  explicit ResourceOutOfMemory(OutOfMemory error)
      : error_(std::make_shared<const OutOfMemory>(std::move(error))) {}
  const char* what() const noexcept override { return error_->what(); }
  const OutOfMemoryReport& report() const noexcept { return error_->report(); }

 private:
  std::shared_ptr<const OutOfMemory> error_;
};

/// Memory of one device's allocator. A value of one word. Copies are alike, and each takes back
/// what another has allocated. Pre: the allocator outlives it and its copies, as a shared one does.
/// Threads may share one as they may the allocator.
///
/// The verbs that allocate throw what CachingAllocator::allocate does with that alignment, but
/// ResourceOutOfMemory in place of OutOfMemory.
class MemoryResource {
 public:
  static constexpr std::size_t kMostAlignment = cistern::kMostAlignment;
  static constexpr std::size_t kDefaultAlignment = 256;
#if CCCL_VERSION >= 3002000
  /// The queries of a cuda::buffer of it, or of another holder that erases its type.
  using default_queries = cuda::mr::properties_list<cuda::mr::device_accessible>;
#endif

  /// The shared allocator of the current device: the one that cudaSetDevice has set.
  MemoryResource() : allocator_(&cistern::allocator()) {}
  explicit MemoryResource(CachingAllocator& allocator) noexcept : allocator_(&allocator) {}

  /// `bytes` for use on `stream`; null for 0 bytes.
  [[nodiscard]] void* allocate(cuda::stream_ref stream, std::size_t bytes,
                               std::size_t alignment = kDefaultAlignment) {
    return allocated(bytes, streamOf(stream), alignment);
  }
  /// The memory serves others once the work queued on `stream`, and on the stream that it was
  /// allocated for, is complete. If both are the same stream, that stream may reuse it at once, in
  /// stream order.
  void deallocate(cuda::stream_ref stream, void* pointer, std::size_t,
                  std::size_t = kDefaultAlignment) noexcept {
    try {
      if (pointer != nullptr) allocator_->recordStream(pointer, streamOf(stream));
    } catch (...) {  // a stream that is gone: only the device knows when its work is complete
      (void)allocator_->device().synchronizeDevice();
    }
    allocator_->free(pointer);
  }

  /// `bytes` for use on any stream, at once. The memory is the default stream's, so the call waits
  /// for the work queued there.
  [[nodiscard]] void* allocate_sync(std::size_t bytes, std::size_t alignment = kDefaultAlignment) {
    void* const pointer = allocated(bytes, Stream{}, alignment);
    if (const Status done = allocator_->device().synchronizeStream(Stream{}); !done) {
      allocator_->free(pointer);
      done.orThrow();
    }
    return pointer;
  }
  /// Pre: no queued work uses the memory.
  void deallocate_sync(void* pointer, std::size_t, std::size_t = kDefaultAlignment) noexcept {
    allocator_->free(pointer);
  }

  // ---- As CCCL 3.0 spells them -----------------------------------------------------------------

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = kDefaultAlignment) {
    return allocate_sync(bytes, alignment);
  }
  void deallocate(void* pointer, std::size_t bytes,
                  std::size_t alignment = kDefaultAlignment) noexcept {
    deallocate_sync(pointer, bytes, alignment);
  }
  [[nodiscard]] void* allocate_async(std::size_t bytes, std::size_t alignment,
                                     cuda::stream_ref stream) {
    return allocate(stream, bytes, alignment);
  }
  void deallocate_async(void* pointer, std::size_t bytes, std::size_t alignment,
                        cuda::stream_ref stream) noexcept {
    deallocate(stream, pointer, bytes, alignment);
  }

  CachingAllocator& allocator() const noexcept { return *allocator_; }
  /// Whether each takes back what the other has allocated.
  friend bool operator==(const MemoryResource& a, const MemoryResource& b) noexcept {
    return a.allocator_ == b.allocator_;
  }
  friend bool operator!=(const MemoryResource& a, const MemoryResource& b) noexcept {
    return !(a == b);
  }
  friend void get_property(const MemoryResource&, cuda::mr::device_accessible) noexcept {}

 private:
  // cudaStreamLegacy is another name of the default stream, which RMM's pools pass upstream. Under
  // two names the memory of one stream would lie in two heaps, and serve only one of them.
  static Stream streamOf(cuda::stream_ref stream) noexcept {
    return stream.get() == cudaStreamLegacy ? Stream{} : Stream{stream.get()};
  }
  void* allocated(std::size_t bytes, Stream stream, std::size_t alignment) {
    try {
      return alignment == kDefaultAlignment ? allocator_->allocate(bytes, stream)
                                            : allocator_->allocate(bytes, stream, alignment);
    } catch (OutOfMemory& error) {
      throw ResourceOutOfMemory(std::move(error));
    }
  }

  CachingAllocator* allocator_;
};

}  // namespace cistern

#pragma pop_macro("Status")
