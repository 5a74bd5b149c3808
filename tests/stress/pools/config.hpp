// What differs from round to round: the device, the allocator's options, how things fail.
#pragma once

#include <cstdint>

#include "allocator/device/sim/sim_device.hpp"
#include "cistern/options.hpp"

namespace cistern::storm {

/// All of it follows from the seed and from how many threads there are.
struct Config {
  Config(std::uint64_t seed, std::size_t threads);

  sim::SimConfig device;
  Options options;
  std::size_t streams;
  std::uint64_t operations;  ///< of each thread
  bool faults;               ///< device calls fail
  bool sources_throw;        ///< the program's own sources of segments do
  bool abrupt_end;           ///< the pools end while replays are still queued
  bool busy_hooks;           ///< observers and callbacks call other verbs
  bool untold;               ///< the allocator is not told of some uses
  bool host_fails;           ///< the host is short of memory for some requests
  bool alone;                ///< one thread: nothing may depend on how threads meet
};

}  // namespace cistern::storm
