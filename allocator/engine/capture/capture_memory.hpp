// Memory for a graph capture that is under way into a pool (capture/recording.hpp). A request of a
// capture gives nothing back to the device, and puts nothing into the graph. It waits in one case:
// the captured stream has the handle of a forgotten one whose work is not complete.
//
// Thread-safe; nothing here may be called with a heap's lock held.
#pragma once

#include "allocator/engine/capture/recording.hpp"
#include "allocator/engine/engine.hpp"

namespace cistern::captures {

/// A block for a request of the capture `request.recording`. Throws as fallbacks::serve does.
Block& allocate(Engine& engine, const Request& request);
/// The graph knows the block's address: its memory stays where it is. Throws std::bad_alloc; then
/// the block is the caller's to free.
void pin(Recording& recording, const Block& block);
/// A free in a heap whose pool the capture number `recorded` is recorded into. False when that is
/// over: then it is an ordinary free, or one of the next capture, which the heap then knows.
bool free(Engine& engine, Heap& heap, const HeapSegment& segment, Address address,
          const void* caller, std::uint32_t recorded) noexcept;

/// From now on requests that the router gives the recording belong to a capture into its pool.
void begin(Engine& engine, std::shared_ptr<Recording> recording, Stream origin);
/// The capture is over. Returns what it has touched, which stays where it is until Engine::unpin.
Pins end(Engine& engine, Recording& recording) noexcept;

}  // namespace cistern::captures
