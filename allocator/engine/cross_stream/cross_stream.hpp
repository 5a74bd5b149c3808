// Memory that goes from one stream to another: a free that is deferred until other streams have
// done with the block, and free memory that one stream leaves and another could use.
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

#include "allocator/engine/engine.hpp"

namespace cistern {

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

}  // namespace cistern
