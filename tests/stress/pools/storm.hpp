// The storm of pools, captures and checkpoints: rounds of random operations by threads that come
// and go, each round with a device and an allocator of its own, until the time is over.
#pragma once

#include <chrono>
#include <cstdint>

#include "tests/stress/pools/model.hpp"

namespace cistern::storm {

/// Rounds have the seeds `seed`, `seed` + 1 and so on. With one thread, all that happens in a round
/// follows from its seed. `rounds` are the most; 0: as many as there is time for. Ends the program
/// when a promise is found broken, or when a thread stays where it is.
void run(std::chrono::milliseconds length, std::uint64_t seed, std::size_t threads,
         std::uint64_t rounds, Counts& counts);
void print(const Counts& counts);

}  // namespace cistern::storm
