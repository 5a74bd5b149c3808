// A piece of memory as queued work sees it.
#pragma once

#include <cstdint>
#include <memory>

#include "allocator/device/sim/backing.hpp"
#include "cistern/sim.hpp"

namespace cistern::sim {

/// A piece of an address range that one physical allocation lies behind.
struct Span {
  Address address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;  ///< of `address` in the backing
  std::shared_ptr<Backing> backing;
  std::uint64_t view = 0;  ///< the mapping it was found through; 0 when it was malloc'ed
  AccessKind kind = AccessKind::kRead;
};

}  // namespace cistern::sim
