// Host memory for the large tables that every operation reads at random. From 2 MiB on it requests
// huge pages: a table of many small ones costs a page walk on top of each cache miss.
#pragma once

#include <cstddef>
#include <new>

#include <sys/mman.h>

namespace cistern {

/// An allocator in the sense of the standard containers.
template <class T>
struct HostAllocator {
  using value_type = T;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  HostAllocator() = default;
  template <class U>
  HostAllocator(const HostAllocator<U>&) noexcept {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    void* memory = ::operator new(bytes, alignmentFor(bytes));
    // Advice: refused where there are no huge pages, and nothing is lost.
    if (bytes >= kHugePage) (void)::madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    ::operator delete(memory, alignmentFor(count * sizeof(T)));
  }
  friend bool operator==(HostAllocator, HostAllocator) { return true; }

 private:
  static constexpr std::align_val_t alignmentFor(std::size_t bytes) {
    return std::align_val_t{bytes >= kHugePage ? kHugePage : 64};
  }
};

}  // namespace cistern
