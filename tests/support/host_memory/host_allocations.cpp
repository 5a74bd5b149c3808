// The test program's operators new and delete: host_memory.hpp.
#include <cstddef>
#include <cstdlib>
#include <new>

#include "tests/support/host_memory/host_memory.hpp"

#if defined(CISTERN_COUNTS_HOST_MEMORY)

namespace {

/// How often the calling thread has asked for host memory.
constinit thread_local std::uint64_t host_allocations = 0;
/// What is done at each of them, but for those that it makes itself.
constinit thread_local const std::function<void()>* at_each = nullptr;

void doAtEach() {
  struct Apart {
    const std::function<void()>* const what = std::exchange(at_each, nullptr);
    ~Apart() { at_each = what; }
  };
  const Apart apart;
  (*apart.what)();
}

void* counted(std::size_t bytes, std::size_t alignment) {
  ++host_allocations;
  if (at_each != nullptr) doAtEach();
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

namespace cistern::test {

std::uint64_t hostAllocations() { return host_allocations; }

AtHostAllocations::AtHostAllocations(std::function<void()> what) : what_(std::move(what)) {
  at_each = &what_;
}
AtHostAllocations::~AtHostAllocations() { at_each = nullptr; }

HostAllocationsApart::HostAllocationsApart() : what_(std::exchange(at_each, nullptr)) {}
HostAllocationsApart::~HostAllocationsApart() { at_each = what_; }

}  // namespace cistern::test

#endif
