// What nobody uses goes back: out of threads' caches to their heaps, and out of heaps to the
// device; and who has some in hand. Thread-safe; nothing here may be called with a heap's lock
// held.
#pragma once

#include <cstdint>

#include "allocator/base/thread_scope.hpp"
#include "allocator/engine/engine.hpp"

namespace cistern {

// ---- To the heaps -------------------------------------------------------------------------------

/// Empties the caches of all threads. True if there was anything in them. Caches that may hold
/// something are looked at, and no others.
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

/// All that is wholly free, of one pool, or of all; or of all `unowned`, which are the default pool
/// and those that nobody uses any more. Pages that queued work may still use follow later.
void emptyCache(Engine& engine, const Pool* only = nullptr, bool unowned = false);
/// Of one pool, until no more than `bytes` are reserved: only what is complete, and nothing follows
/// later.
void trim(Engine& engine, const Pool& pool, std::uint64_t bytes);
/// What cannot serve the request as it lies, but makes room for what would: idle segments, or, for
/// a segment and where pages do not move, pages. True when there was any.
bool makeRoomFor(Engine& engine, const Request& request);
/// Whose free memory goes back for a request: that of its own pool, the default pool and draining
/// pools; or that of live pools too, which is what emptyCache gives back.
enum class Givers : std::uint8_t { kUnowned, kAll };
/// All that lies free and complete in the givers goes back to the device, which can make other
/// memory of it. Nothing goes where the limit leaves no room even then. True when there was any.
bool giveBackFor(Engine& engine, const Request& request, Givers givers);
/// What was unused for long, where the option garbage_collection_threshold is set.
void collectGarbage(Engine& engine);

// ---- Memory in hand -----------------------------------------------------------------------------

/// A thread that takes memory from where it lies, to use it or to give it back. What it has in hand
/// meanwhile no other finds: so a thread that has found none knows that there is none only if it
/// was alone. What it does in a callback of the program's, in such a scope again, is no other's.
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
  // Engine::in_hand: how many are in a scope now, and above how many have ever begun one.
  static constexpr std::uint64_t kNow = 1, kBegun = std::uint64_t{1} << 20, kOne = kBegun + kNow;

  bool nested() const noexcept { return outer() != nullptr && &outer()->engine_ == &engine_; }

  Engine& engine_;
  std::uint64_t seen_;
};

}  // namespace cistern
