// Blocks that other threads have freed, on their way to the cache that owns them: a message instead
// of a lock. Any thread adds. A thread that holds the heap's lock, and may touch the cache, takes
// them all. A block on the list keeps its WhoFreed (ownership.hpp) in use.stream.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/engine/ground/ownership.hpp"
#include "allocator/layout/block.hpp"

namespace cistern {

class RemoteFrees {
 public:
  /// The bytes that may be on their way at once. Beyond that, other threads lock the heap.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;

  enum class Answer : std::uint8_t { kTaken, kNoRoom, kNotHeld };

  /// Sends a block. `holder`: the holder word just read. It names this cache, and kHeld. kNoRoom:
  /// nothing has changed. kNotHeld: somebody else frees it too.
  Answer add(Block& block, std::uint32_t holder, WhoFreed who) noexcept {
    const std::uint64_t bytes = block.bytes();
    Block* top = top_.load(std::memory_order_relaxed);
    if (top == closed() || bytes_.load(std::memory_order_relaxed) + bytes > kMostBytes)
      return Answer::kNoRoom;
    if (!ownership::change(block, holder, ownership::moved(holder, ownership::Where::kRemoteFreed)))
      return Answer::kNotHeld;
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    block.use.stream = who.word();
    do {
      if (top == closed()) {
        bytes_.fetch_sub(bytes, std::memory_order_relaxed);
        ownership::store(block, holder);
        return Answer::kNoRoom;
      }
      block.use.uses = top;
    } while (!top_.compare_exchange_weak(top, &block, std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
    return Answer::kTaken;
  }

  bool any() const noexcept {
    Block* const top = top_.load(std::memory_order_relaxed);
    return top != nullptr && top != closed();
  }
  /// The last that came, linked by use.uses; null for none.
  Block* takeAll() noexcept { return replace(nullptr); }
  /// takeAll(); and from now on, until open(), there is no room.
  Block* close() noexcept { return replace(closed()); }
  void open() noexcept { top_.store(nullptr, std::memory_order_release); }

 private:
  // A marker, not a block: it stands in top_ while the list is closed.
  static Block* closed() noexcept { return reinterpret_cast<Block*>(alignof(Block)); }

  // Blocks that are added meanwhile are counted already, so never more is subtracted than was
  // added. It exchanges even an empty list. So a thread that adds later sees all that the caller
  // wrote before.
  Block* replace(Block* by) noexcept {
    Block* const top = top_.load(std::memory_order_relaxed);
    if (top == closed()) return nullptr;
    Block* const all = top_.exchange(by, std::memory_order_acq_rel);
    std::uint64_t bytes = 0;
    for (const Block* b = all; b; b = ownership::linkedTo(*b)) bytes += b->bytes();
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return all;
  }
  std::atomic<Block*> top_{nullptr};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace cistern
