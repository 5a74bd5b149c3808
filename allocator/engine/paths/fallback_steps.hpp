// The steps of a miss: each looks for memory in one place. The order in which they are tried is
// that of the tables in fallbacks.cpp. The steps that look at what there is are in
// fallback_steps.cpp. The steps that wait until memory becomes free are in waiting_steps.cpp.
//
// A step is called without a heap's lock. It returns null if it has found nothing.
#pragma once

#include <span>

#include "allocator/engine/engine.hpp"

namespace cistern::slow_path {

using Step = Block* (*)(Engine& engine, Heap& heap, const Request& request);

/// The block of the first step that finds one; null if none does.
inline Block* firstOf(std::span<const Step> steps, Engine& engine, Heap& heap,
                      const Request& request) {
  for (const Step step : steps) {
    if (Block* const block = step(engine, heap, request)) return block;
  }
  return nullptr;
}

// ---- What there is ------------------------------------------------------------------------------

/// The heap's own free memory.
Block* search(Engine& engine, Heap& heap, const Request& request);
/// Memory that the capture has freed, in the graph's order. Pre: the request is a capture's.
Block* fromCapture(Engine& engine, Heap& heap, const Request& request);
/// Some blocks whose last use on other streams is complete by now.
Block* afterEvents(Engine& engine, Heap& heap, const Request& request);
/// All blocks whose last use on other streams is complete by now.
Block* afterAllEvents(Engine& engine, Heap& heap, const Request& request);
/// Memory that pools and graphs which have ended do not need.
Block* afterTidying(Engine& engine, Heap& heap, const Request& request);
/// Gives memory that was unused for long back to the device. Finds nothing itself.
Block* afterGarbageCollection(Engine& engine, Heap& heap, const Request& request);
/// Pages moved or made; segments adopted or made.
Block* moreMemory(Engine& engine, Heap& heap, const Request& request);
/// A segment just as large as need be.
Block* growTightly(Engine& engine, Heap& heap, const Request& request);
/// Parts of other streams' memory whose last use is complete.
Block* completePartsOfOthers(Engine& engine, Heap& heap, const Request& request);
/// Parts of other streams' memory: complete ones, or parts that the stream is made to wait for.
Block* partsOfOthers(Engine& engine, Heap& heap, const Request& request);
/// Parts of other streams' memory, or room made by giving back.
Block* afterMakingRoom(Engine& engine, Heap& heap, const Request& request);
/// Host memory that an earlier overflow has made, and that lies free.
Block* fromFreeHost(Engine& engine, Heap& heap, const Request& request);
/// A small request out of large memory, or a large one out of small.
Block* fromOtherKind(Engine& engine, Heap& heap, const Request& request);
/// fromOtherKind() for a capture: out of memory that it has freed, free memory, or complete parts.
Block* fromOtherKindInCapture(Engine& engine, Heap& heap, const Request& request);

// ---- What the host waits for --------------------------------------------------------------------

/// Blocks that wait for other streams, a stream at a time.
Block* afterPending(Engine& engine, Heap& heap, const Request& request);
/// Memory that graphs which were reset still hold.
Block* afterResetGraphs(Engine& engine, Heap& heap, const Request& request);
/// Memory that is complete when the whole device is.
Block* afterTheDevice(Engine& engine, Heap& heap, const Request& request);
/// Free memory, given back and made again: of the default pool, draining pools and the request's
/// own pool.
Block* afterGivingAllBack(Engine& engine, Heap& heap, const Request& request);
/// Free memory, given back and made again: of live pools too.
Block* afterGivingLivePoolsBack(Engine& engine, Heap& heap, const Request& request);

}  // namespace cistern::slow_path
