// Blocks that wait for work of other streams: their frees are deferred. Thread-safe. Takes heaps'
// locks one at a time; nothing here may be called with one held.
#pragma once

#include "allocator/engine/engine.hpp"

namespace cistern {

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

}  // namespace cistern
