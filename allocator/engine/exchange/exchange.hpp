// Memory changes hands when nobody uses it: it goes from threads' caches to their heaps, from one
// stream's heap to another's request, and from heaps to the device.
//
// There are two ways to use another heap's free block (pages/mover.hpp moves whole pages). A wholly
// free segment whose last use is complete is adopted: it moves, and is the new heap's own from then
// on. Otherwise the block is a loan. It stays the owner's, and its free waits for the stream it is
// lent to, as for a recorded use.
//
// Thread-safe. Takes heaps' locks one at a time, with one exception. It takes complete memory with
// two of them held under Engine::heaps_mutex. It also holds the backing's lock while it looks in
// pools that lend. Nothing here may be called with a heap's lock held.
#pragma once

#include <chrono>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "allocator/base/sections.hpp"
#include "allocator/base/thread_scope.hpp"
#include "allocator/engine/engine.hpp"

namespace cistern {

// ---- From caches to heaps (giving_back.cpp) -----------------------------------------------------

/// Empties the caches of all threads. True if there was anything in them. It looks only at caches
/// that may hold something.
bool flushCaches(Engine& engine) noexcept;
/// Called after each free that a heap took outside a capture: does what was found to be due, once
/// the heap's lock is given up.
void afterFree(Engine& engine, Heap& heap, Heap::Due due) noexcept;
/// A heap is at low water: its pages go home, and caches are emptied.
void atLowWater(Engine& engine, Heap& heap) noexcept;

// ---- From heaps to the device (giving_back.cpp) -------------------------------------------------

/// Gives back all wholly free memory: of one pool, or of all. With `unowned`, it is that of the
/// default pool and of the pools that nobody uses any more. Pages that queued work may still use
/// follow later.
void emptyCache(Engine& engine, const Pool* only = nullptr, bool unowned = false);
/// The same, for a caller that holds a lock: it calls nothing of the program's. So memory of pools
/// and graphs that have ended, and that nobody has tidied yet, stays.
void emptyCacheUntidied(Engine& engine, const Pool* only = nullptr, bool unowned = false);

/// What giveBackUnused has seen: when each heap's epoch ended, and the tick.
struct UnusedSince {
  std::unordered_map<const Heap*, std::uint64_t> epochs;
  std::uint64_t tick = 0;
};
/// Gives back what lies wholly free in the default pool and in draining ones, and was not used
/// since the last call with this record. Throws std::bad_alloc.
void giveBackUnused(Engine& engine, UnusedSince& last);
/// Gives back memory of these heaps, until no more than `bytes` are reserved. It takes only
/// complete memory, the longest unused of a heap first, and nothing follows later.
void trim(Engine& engine, const std::vector<Heap*>& heaps, std::uint64_t bytes);
/// Bytes of the heaps' segments, or of the pages that are mapped in their ranges. Takes the heaps'
/// locks, one at a time.
std::uint64_t reservedBytes(const std::vector<Heap*>& heaps);
/// Gives back free memory that, as it lies, cannot serve the request. That makes room for memory
/// that can. It takes idle segments first. Without any, it takes pages, but only if the request
/// needs a segment, or pages do not move. True when there was any.
bool makeRoomFor(Engine& engine, const Request& request) CISTERN_REQUIRES(engine.pressure_mutex);
/// The pools whose free memory goes back for a request. They are its own pool, the default pool and
/// draining pools; or live pools too, as with emptyCache.
enum class Givers : std::uint8_t { kUnowned, kAll };
/// Gives all free and complete memory of the givers back. The device can then make new memory in
/// its place. Gives nothing back if the limit leaves no room even then. True when there was any.
bool giveBackFor(Engine& engine, const Request& request, Givers givers)
    CISTERN_REQUIRES(engine.pressure_mutex);
/// Gives back memory that was unused for long, if the option garbage_collection_threshold is set,
/// unless another thread is giving memory back.
void collectGarbage(Engine& engine);

// ---- Frees that are deferred (deferral.cpp) -----------------------------------------------------

/// The block at the address is used on `stream` too. False when there is no such block. Throws
/// std::bad_alloc.
bool recordUse(Engine& engine, Address address, Stream stream);
/// A block that has become pending is free when the work queued by now on all of `uses` is
/// complete. `captured`: a capture that is under way may have had the memory.
void deferFree(Engine& engine, Block& block, const StreamUses& uses,
               bool captured = false) noexcept;
/// deferFree() for a block that any stream may have used: it waits for all known streams.
void deferToAll(Engine& engine, Block& block, const StreamUses& told = {},
                bool captured = false) noexcept;
/// A pending block is free now.
void putBack(Engine& engine, const PendingFrees::Pending& pending) noexcept;

// ---- A block for a request out of other heaps, or null (loans.cpp) ------------------------------

/// Whether no stream that this allocator knows has work queued.
bool streamsAreIdle(Engine& engine);
/// How far a search looks: at idle segments, which are adopted; or also at parts of segments and of
/// ranges.
enum class Extent : std::uint8_t { kSegments, kParts };
/// One whose last use is complete.
Block* takeComplete(Engine& engine, Heap& heap, const Request& request, Extent extent);
/// A loan that queued work may still use: the request's stream is ordered after it on the device.
/// Not out of a pool that is captured into.
Block* loanInOrder(Engine& engine, Heap& heap, const Request& request);
/// Free memory of a pool that lends, rather than be out of memory. It is a block in place, as a
/// loan, or wholly free pages. Never memory that a graph may write to.
Block* takeFromLenders(Engine& engine, Heap& heap, const Request& request);

// ---- Memory in hand -----------------------------------------------------------------------------

/// A thread that takes memory from where it lies, to use it or to give it back. While memory is in
/// hand, searches by other threads cannot see it. So a failed search is conclusive only if the
/// thread was alone. A scope that the same thread opens in a callback of the program is not another
/// thread's.
class InHand : public ThreadScope<InHand> {
 public:
  explicit InHand(Engine& engine) noexcept : engine_(engine), entry_(engine.in_hand.enter()) {}
  ~InHand() {
    engine_.in_hand.leave(entry_);
    if (InHand* const scope = around()) scope->inner_ += 1 + inner_;
  }

  /// Whether no other thread has been in an InHand scope of the engine's since this one began.
  bool alone() const noexcept {
    return around() != nullptr || engine_.in_hand.alone(entry_, inner_);
  }

  /// Waits until what other threads have in hand now has left their hands. False if one still has
  /// some after a second: it may run code of the program's that waits for this thread. A thread
  /// that has some itself does not wait.
  static bool waitForOthers(Engine& engine) noexcept {
    if (insideAny([&](const InHand& scope) { return &scope.engine_ == &engine; })) return true;
    return engine.in_hand.waitForOthers(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  }

 private:
  /// The next scope of the engine's that it lies in; null for none.
  InHand* around() const noexcept {
    InHand* scope = outer();
    while (scope != nullptr && &scope->engine_ != &engine_) scope = scope->outer();
    return scope;
  }

  Engine& engine_;
  const Sections::Entry entry_;
  std::uint64_t inner_ = 0;  ///< scopes that began and ended in it
};

}  // namespace cistern
