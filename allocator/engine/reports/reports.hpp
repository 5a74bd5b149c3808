// Reports on a pointer, on a wrong free, and on a request that no memory was found for. Takes
// heaps' locks, one at a time, and calls hooks of the program with none held. Thread-safe.
#pragma once

#include "allocator/engine/engine.hpp"

namespace cistern {

/// The block that the program has there. Throws InvalidArgument, which names the pointer, for any
/// other.
const Block& blockAt(const Engine& engine, const char* verb, Address address);
/// Tells the misuse hook of a pointer that is no block's that the program has.
void reportMisuse(Engine& engine, const char* verb, Address address) noexcept;
/// Bytes that the device has free; 0 where it does not say.
std::uint64_t deviceFree(Engine& engine);
/// The report to reclaim callbacks on a request that finds no memory. Asks the device.
MemoryShortage shortageOf(Engine& engine, const Request& request, std::uint32_t attempt);
/// Tells the observers, and throws OutOfMemory.
[[noreturn]] void throwOutOfMemory(Engine& engine, const Request& request);

}  // namespace cistern
