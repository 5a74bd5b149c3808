// Notes of a heap's memory in the memory log.
#pragma once

#include "allocator/engine/ground/memory_log.hpp"
#include "allocator/engine/heaps/pool.hpp"

namespace cistern {

/// Notes an event of the heap's memory, which lies at `location`, while the log is on. If the host
/// is short of memory, the event is lost. `stays_mapped`: as MemoryEvent's.
inline void note(MemoryLog& log, MemoryAction action, Address address, std::uint64_t bytes,
                 const Heap& heap, Location location = Location::kDevice,
                 bool stays_mapped = false) noexcept {
  if (!log.on()) return;
  log.note({action, address, bytes, heap.stream(), heap.pool().id(), location, stays_mapped});
}

}  // namespace cistern
