// Between two steps of a program, blocks that are used least move to the host, and others home.
#pragma once

#include "allocator/engine/engine.hpp"
#include "cistern/report.hpp"

namespace cistern {

/// CachingAllocator has the contract.
SettleReport settle(Engine& engine, Stream stream, std::uint64_t most);

}  // namespace cistern
