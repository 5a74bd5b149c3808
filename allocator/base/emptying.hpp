// The words between a process that can be put to sleep and the command `cistern sleep`: how the
// process's socket is named, and what goes over it. The process has one socket for each copy of
// Cistern in it.
#pragma once

#include <cstdint>

namespace cistern {

/// The variable of the environment that makes a process listen to `cistern sleep`.
inline constexpr char kSleepable[] = "CISTERN_SLEEPABLE";

/// How the name of the abstract unix socket begins. The process's number in its own PID namespace
/// follows, then a `-`, then a random number.
inline constexpr char kEmptyingSocket[] = "cistern-sleep-";

/// The request: this word as one packet, in the machine's byte order.
inline constexpr std::uint64_t kEmptyRequest = 0x3179'7470'6d65'6331;

/// The answer, as one packet.
struct EmptyAnswer {
  std::uint64_t word = kEmptyRequest;
  std::uint64_t before = 0;      ///< bytes that the allocators had reserved
  std::uint64_t after = 0;       ///< bytes that they have reserved now
  std::uint32_t allocators = 0;  ///< that were emptied
  std::uint32_t failed = 0;      ///< of these, those that reported an error
};
static_assert(sizeof(EmptyAnswer) == 32);

}  // namespace cistern
