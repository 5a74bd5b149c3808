// All of one allocator: what everything stands on (core.hpp), and the blocks that wait, the pools
// and the locks of a miss. What is done with them are functions that are given the engine, a header
// for each kind:
//
//   fast_path.hpp                  a hit
//   slow_path.hpp                  what a request or a free does beyond it
//   fallbacks.hpp                  the steps of a miss
//   giving_back.hpp                from caches to heaps, from heaps to the device
//   streams/cross_stream.hpp       other streams' memory
//   capture/capture_memory.hpp     memory of a graph capture
//   pools/restoration.hpp          a pool is set back to a checkpoint
//   statistics/accounting.hpp      what there is, and what always holds of it
#pragma once

#include "allocator/engine/core.hpp"
#include "allocator/engine/pools/pool_table.hpp"
#include "allocator/engine/sharing/exports.hpp"
#include "allocator/engine/streams/pending_frees.hpp"

namespace cistern {

struct Engine : Core {
  /// Asks the device for nothing. `total`: bytes of memory that the device has; 0 for an allocator
  /// that is never used.
  Engine(Device& device, const Options& options, std::uint64_t total);
  /// Gives everything back to the device, if the driver may still be called.
  ~Engine();

  PendingFrees pending;
  PoolTable pools;
  PageDescriptors exported;  ///< of blocks that other processes use
  /// Serialises what gives memory back to make room, so that two threads do not undo each other.
  Mutex pressure_mutex;
  /// Serialises those who wait for queued work, so that none gives up while another has it.
  Mutex waiting_mutex;
};

}  // namespace cistern
