// Asks a process that Cistern serves to empty its caches.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "interop/command/sleep/named_process.hpp"

namespace cistern::command {

/// All copies of Cistern in a process together.
struct Emptied {
  std::uint64_t before = 0;  ///< bytes that its allocators had reserved
  std::uint64_t after = 0;   ///< bytes that they have reserved now
  std::string why_not;       ///< why its caches, or some of them, were not emptied; else empty
};

/// Waits for an answer of each copy for at most that long. Does not throw for a process that does
/// not answer: `why_not` says so.
Emptied askToEmpty(const NamedProcess& process, std::chrono::milliseconds most);

}  // namespace cistern::command
