// What a miss tries, one step after another, before it is an OutOfMemory. Each step looks for
// memory a little further away; the first block found ends it. The steps stand in one table in
// fallbacks.cpp. Thread-safe; nothing here runs under a heap's lock.
#pragma once

#include "allocator/engine/engine.hpp"

namespace cistern::fallbacks {

/// A block for a request that the heap's free memory does not serve. A request of a capture takes
/// the steps that neither wait nor give anything back. Throws OutOfMemory, nothing having changed
/// apart from cached memory given back; std::bad_alloc; what a callback or a pool's source throws.
Block& serve(Engine& engine, Heap& heap, const Request& request);

}  // namespace cistern::fallbacks
