// Memory that nobody uses goes from heaps to the device. Thread-safe; nothing here may be called
// with a heap's lock held.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/engine/engine.hpp"

namespace cistern {

/// Gives back all wholly free memory: of one pool, or of all. With `unowned`, it is that of the
/// default pool and of the pools that nobody uses any more. Pages that queued work may still use
/// follow later.
void emptyCache(Engine& engine, const Pool* only = nullptr, bool unowned = false);
/// The same for all pools, for a caller that holds a lock: it calls nothing of the program's. So
/// memory of pools and graphs that have ended, and that nobody has tidied yet, stays.
void emptyCacheUntidied(Engine& engine);
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

}  // namespace cistern
