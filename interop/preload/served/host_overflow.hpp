// Memory of the host for requests that a device has no room for (`cistern run --overflow`).
//
// The allocator makes pages there once it finds nothing else (allocator/engine/paths). It does
// not know the memory that other contexts of the device keep, or the frees that cool. Those come
// first. Besides, a device that refuses a page may not be full: another thread may have its turn
// (last_resort.hpp). So a thread takes a turn of its own before it comes to the host's memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "interop/preload/served/contexts.hpp"

namespace cistern::preload::GPU_NAMESPACE {

/// A request that its allocator has no free block for, while it lives. Pre: the thread holds no
/// lock, and has no turn. One lives on a thread at a time.
class Miss {
 public:
  explicit Miss(int device) noexcept : device_(device) { current_ = this; }
  ~Miss() { current_ = nullptr; }
  Miss(const Miss&) = delete;
  Miss& operator=(const Miss&) = delete;

  /// The calling thread's miss has a turn from now on, which it waits for. False if the thread has
  /// one already, or no miss.
  static bool takeTurn();

 private:
  static inline constinit thread_local Miss* current_ = nullptr;
  const int device_;
  std::optional<LastResort> turn_;
};

namespace detail {
inline constinit std::atomic<bool> overflows{false};
}  // namespace detail

/// Whether some block may lie in the host's memory.
inline bool overflows() noexcept { return detail::overflows.load(std::memory_order_relaxed); }

/// The allocator may have so many bytes of the host's memory. Where there are no pages of it, says
/// so once, and the program goes on without. Pre: the context is current. Throws std::bad_alloc.
void letOverflow(Serving& serving, std::uint64_t bytes);

/// Whether the block lies in the host's memory, wholly or in part. Pre: it is a block of some
/// context's allocator.
bool liesOnHost(const Blocks::Around& block) noexcept;

/// The bytes, as asked for, of the program's blocks that lie there.
std::uint64_t heldOnHost(Blocks& blocks, const Serving& serving) noexcept;

}  // namespace cistern::preload::GPU_NAMESPACE
