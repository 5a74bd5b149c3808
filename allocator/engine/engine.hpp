// All parts of one allocator. Each stands on those above it, and calls no other.
#pragma once

#include "allocator/engine/allocate_path.hpp"
#include "allocator/engine/capture/capture_memory.hpp"
#include "allocator/engine/core.hpp"
#include "allocator/engine/fallbacks.hpp"
#include "allocator/engine/flusher.hpp"
#include "allocator/engine/free_path.hpp"
#include "allocator/engine/giving_back.hpp"
#include "allocator/engine/heap/stream_heaps.hpp"
#include "allocator/engine/pools/pool_table.hpp"
#include "allocator/engine/sharing/exports.hpp"
#include "allocator/engine/statistics/accounting.hpp"
#include "allocator/engine/streams/cross_stream.hpp"

namespace cistern {

struct Engine {
  /// Asks the device for nothing. `total`: bytes of memory that the device has; 0 for an allocator
  /// that is never used.
  Engine(Device& device, const Options& options, std::uint64_t total);
  /// Gives everything back to the device, if the driver may still be called.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Core core;
  Flusher flusher;
  CrossStream cross_stream;
  StreamHeaps stream_heaps;
  GivingBack giving_back;
  PoolTable pools;
  Accounting accounting;
  Fallbacks fallbacks;
  CaptureMemory captures;
  FreePath free_path;
  AllocatePath allocate_path;
  Exports exports;
};

}  // namespace cistern
