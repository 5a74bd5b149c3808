// Gives back memory that nobody uses: from threads' caches to their heaps, and from heaps to the
// device. Also tracks the threads that have memory in hand. Thread-safe; nothing here may be called
// with a heap's lock held.
#pragma once

#include <cstdint>

#include "allocator/base/thread_scope.hpp"
#include "allocator/engine/engine.hpp"

namespace cistern {

// ---- To the heaps -------------------------------------------------------------------------------

/// Empties the caches of all threads. True if there was anything in them. It looks only at caches
/// that may hold something.
bool flushCaches(Engine& engine) noexcept;
/// Called after each free that a heap took outside a capture: does what was found to be due, once
/// the heap's lock is given up.
void afterFree(Engine& engine, Heap& heap, Heap::Due due) noexcept;
/// A heap is at low water: its pages go home, and caches are emptied.
void atLowWater(Engine& engine, Heap& heap) noexcept;

/// Whether the heap has no memory, and nothing that its stream did is still under way: then it may
/// become another stream's.
bool holdsNothing(Engine& engine, Heap& heap);

// ---- To the device ------------------------------------------------------------------------------

/// Gives back all wholly free memory: of one pool, or of all. With `unowned`, it is that of the
/// default pool and of the pools that nobody uses any more. Pages that queued work may still use
/// follow later.
void emptyCache(Engine& engine, const Pool* only = nullptr, bool unowned = false);
/// Gives back memory of one pool, until no more than `bytes` are reserved. It takes only complete
/// memory, and nothing follows later.
void trim(Engine& engine, const Pool& pool, std::uint64_t bytes);
/// Gives back memory that cannot serve the request as it lies, to make room for memory that would.
/// It takes idle segments; or pages, for a segment and where pages do not move. True when there was
/// any.
bool makeRoomFor(Engine& engine, const Request& request);
/// The pools whose free memory goes back for a request. They are its own pool, the default pool and
/// draining pools; or live pools too, as with emptyCache.
enum class Givers : std::uint8_t { kUnowned, kAll };
/// Gives all free and complete memory of the givers back to the device, which can make other memory
/// of it. Gives nothing back if the limit leaves no room even then. True when there was any.
bool giveBackFor(Engine& engine, const Request& request, Givers givers);
/// Gives back memory that was unused for long, if the option garbage_collection_threshold is set.
void collectGarbage(Engine& engine);

// ---- Memory in hand -----------------------------------------------------------------------------

/// A thread that takes memory from where it lies, to use it or to give it back. No other thread
/// finds memory in hand. So a failed search is conclusive only if the thread was alone. A scope
/// that the same thread opens in a callback of the program is not another thread's.
class InHand : public ThreadScope<InHand> {
 public:
  explicit InHand(Engine& engine) noexcept
      : engine_(engine), seen_(engine.in_hand.fetch_add(kOne) + kOne) {}
  ~InHand() {
    engine_.in_hand.fetch_sub(kNow);
    if (nested()) outer()->seen_ += kBegun;
  }

  /// Whether no other thread has been in such a scope of the engine's since this one began.
  bool alone() const noexcept {
    return nested() || (seen_ % kBegun == kNow && engine_.in_hand.load() == seen_);
  }

 private:
  // Engine::in_hand: the low bits count the scopes that are open now. The bits above count all that
  // have ever begun.
  static constexpr std::uint64_t kNow = 1, kBegun = std::uint64_t{1} << 20, kOne = kBegun + kNow;

  bool nested() const noexcept { return outer() != nullptr && &outer()->engine_ == &engine_; }

  Engine& engine_;
  std::uint64_t seen_;
};

}  // namespace cistern
