// What goes wrong, and what is said of it: a pointer that is no block's, and a request that no
// memory was found for. Takes heaps' locks, and calls hooks of the program with none held.
// Thread-safe.
#pragma once

#include "allocator/engine/engine.hpp"

namespace cistern {

// ---- A wrong pointer (misuse.cpp) ---------------------------------------------------------------

/// The block that the program has there. Throws InvalidArgument, which names the pointer, for any
/// other.
const Block& blockAt(const Engine& engine, const char* verb, Address address);
/// Tells the misuse hook of a pointer that is no block's that the program has.
void reportMisuse(Engine& engine, const char* verb, Address address) noexcept;

// ---- A request without memory (out_of_memory.cpp) -----------------------------------------------

/// A block as a snapshot shows it. Pre: the caller holds the lock of its heap. If the heap
/// `sleeps`, or its pages may lie `on_host`, it holds the page backing's too.
SnapshotBlock pictureOf(const Engine& engine, const Heap& heap, const Block& block, bool sleeps,
                        bool on_host);
/// Bytes that the device has free; 0 where it does not say.
std::uint64_t deviceFree(Engine& engine);
/// The report to reclaim callbacks on a request that finds no memory. Asks the device.
MemoryShortage shortageOf(Engine& engine, const Request& request, std::uint32_t attempt);
/// Tells the observers, and throws OutOfMemory.
[[noreturn]] void throwOutOfMemory(Engine& engine, const Request& request);

}  // namespace cistern
