// Free memory that one stream leaves and another could use.
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

/// Whether no stream that this allocator knows has work queued.
bool streamsAreIdle(Engine& engine);

// ---- A block for a request out of other heaps, or null ------------------------------------------

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
