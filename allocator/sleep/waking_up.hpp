// Pools wake: their blocks have memory again, at the same addresses, all of them or none.
//
//   choose   which pages are made: those that blocks still lie in, or that a graph holds
//   make     them all, and then copy what was saved
//   commit   what is in use has its pages, and what is free is free memory
//
// A failure undoes all. A page that the device does not take back then waits, mapped or not, for
// the next wake.
#pragma once

#include <optional>
#include <vector>

#include "allocator/sleep/falling_asleep.hpp"

namespace cistern {

/// The pools, which all sleep, wake. Adds to `report`. Returns how many bytes of memory are missing
/// if there is no room, also after all that lies free has gone back to the device
/// (emptyCacheUntidied); then nothing has changed but for that. Throws DeviceFailure,
/// std::bad_alloc, changing nothing. The chunks are the caller's to give back. Pre: one thread at a
/// time.
std::optional<std::uint64_t> wakeUp(Engine& engine, const std::vector<SleepingPool*>& pools,
                                    WakeReport& report);

}  // namespace cistern
