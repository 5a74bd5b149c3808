// The blocks that lie in the host's memory because the device was full. docs/overflow.md says what
// it costs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cistern/types.hpp"

namespace cistern {

/// A block in host memory that the device had no room for.
struct OverflowBlock {
  void* address = nullptr;
  std::uint64_t bytes = 0;
  MempoolId_t pool{};
  Stream stream{};
};

/// The outcome of CachingAllocator::settle, in bytes and nanoseconds.
struct SettleReport {
  std::uint64_t to_host = 0;    ///< moved to the host
  std::uint64_t to_device = 0;  ///< moved home
  std::uint64_t waited_ns = 0;  ///< for the stream's work
};

struct CISTERN_API OverflowReport {
  std::uint64_t host_bytes = 0;       ///< the most that may lie in host memory; 0: overflow is off
  std::uint64_t reserved = 0;         ///< bytes of pages of host memory, with what lies free there
  std::uint64_t most_reserved = 0;    ///< the most of them at one time
  std::uint64_t step_bytes = 0;       ///< over the bus between the last two settles, as estimated:
                                      ///< what lay there was written once and read once
  std::uint64_t handed_out = 0;       ///< bytes of all blocks that were made there so far
  std::uint64_t would_do = 0;         ///< a limit of the device's memory, in bytes, with which
                                      ///< nothing would have come to lie there; 0: nothing did
  std::vector<OverflowBlock> blocks;  ///< those in use, the largest first

  /// The figures and the largest blocks, in lines for a person.
  std::string text() const;
};

}  // namespace cistern
