// Reports on a request that no memory was found for. Takes heaps' locks, and calls hooks of the
// program with none held. Thread-safe.
#pragma once

#include "allocator/engine/engine.hpp"

namespace cistern {

/// Bytes that the device has free; 0 where it does not say.
std::uint64_t deviceFree(Engine& engine);
/// The report to reclaim callbacks on a request that finds no memory. Asks the device.
MemoryShortage shortageOf(Engine& engine, const Request& request, std::uint32_t attempt);
/// Tells the observers, and throws OutOfMemory.
[[noreturn]] void throwOutOfMemory(Engine& engine, const Request& request);

}  // namespace cistern
