// The heap of a request's stream: found, made for a stream that is named for the first time, or
// taken over from one that is gone. Thread-safe; nothing here may be called with a heap's lock
// held.
#pragma once

#include "allocator/engine/core.hpp"

namespace cistern {

/// The heap of the request's stream and pool. Throws InvalidArgument for a stream that is not
/// alive, DeviceFailure, std::bad_alloc.
Heap& heapFor(Core& core, const Request& request);
/// Whether the heap has no memory, and nothing that its stream did is still under way: then it may
/// become another stream's.
bool holdsNothing(Core& core, Heap& heap);

}  // namespace cistern
