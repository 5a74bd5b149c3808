// Host memory costs the same every time here: it is cut off one piece, and never comes back. What
// the C library takes for it depends on what lies free where, down to the length of the program's
// name.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kMost = std::size_t{256} << 20;
alignas(4096) std::byte memory[kMost];
std::atomic<std::size_t> used{0};

void* cut(std::size_t bytes, std::size_t alignment) noexcept {
  const std::size_t from = used.fetch_add(bytes + alignment, std::memory_order_relaxed);
  if (from + bytes + alignment > kMost) std::abort();
  return memory + (from + alignment - 1) / alignment * alignment;
}

}  // namespace

void* operator new(std::size_t bytes) { return cut(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return cut(bytes, std::size_t(alignment));
}
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
void operator delete(void*, std::align_val_t) noexcept {}
void operator delete(void*, std::size_t, std::align_val_t) noexcept {}
