// Host memory is counted in the whole test program, so that a test can say that a verb asks for
// none.
#include <cstddef>
#include <cstdlib>
#include <new>

#include "tests/engine/thread_cache_support.hpp"

#if defined(CISTERN_COUNTS_HOST_MEMORY)

namespace {

/// How often the calling thread has asked for host memory.
constinit thread_local std::uint64_t host_allocations = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  ++host_allocations;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = alignment <= alignof(std::max_align_t)
                           ? std::malloc(bytes ? bytes : 1)
                           : std::aligned_alloc(alignment, whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, 1); }
void* operator new[](std::size_t bytes) { return counted(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t a) { return counted(bytes, std::size_t(a)); }
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return counted(bytes, std::size_t(a));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

std::uint64_t cistern::test::hostAllocations() { return host_allocations; }

#endif
