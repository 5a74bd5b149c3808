// Pools fall asleep: their memory goes back to the device, all of it or none.
//
//   mark      what is free becomes holes, and no request is served: nothing moves from here on
//   save      host memory is pinned, and what is to be kept is copied there
//   put away  pages are unmapped, and given back
//
// A failure before the first page goes undoes all. From then on a page that the device does not
// let go stays, and the report names it.
#pragma once

#include <vector>

#include "allocator/engine/engine.hpp"
#include "allocator/sleep/saved_runs.hpp"
#include "cistern/sleep.hpp"

namespace cistern {

/// A pool that sleeps: what it needs beside its pages to wake.
struct SleepingPool {
  Pool* pool = nullptr;
  /// Addresses that are saved as blocks are, also where no block is in use: graphs' results. They
  /// lie in memory that a graph holds.
  std::vector<AddressRange> results;
  PinnedChunks chunks;
  std::vector<SavedRun> saved;       ///< by address
  std::vector<AddressRange> zeroes;  ///< to be cleared
};

/// Each of the pools, which are all awake and flagged as asleep (Pool::asleep), falls asleep.
/// `report` is empty before; released + stayed is what they reserve as this begins. Returns false,
/// changing nothing, if queued work may still use memory of them: the whole device has to be waited
/// for. Throws HostShortage, DeviceFailure, std::bad_alloc, changing nothing. Pre: the pools'
/// memory is pages; no queued work of their users is under way; one thread at a time.
bool fallAsleep(Engine& engine, SleepMemory& memory, std::vector<SleepingPool>& pools,
                Contents otherwise, SleepReport& report);

}  // namespace cistern
