// What this keeps for one device: Cistern's allocator there, which all of the process shares, and
// PyTorch's pools and history beside it.
#pragma once

#include "cistern/default_allocator.hpp"
#include "history.hpp"
#include "pools.hpp"
#include "version.hpp"

namespace cistern_torch {

struct DeviceState {
  explicit DeviceState(DeviceIndex ordinal)
      : device(ordinal),
        allocator(cistern::allocator(ordinal)),
        pools(cistern::pools(ordinal)),
        history(ordinal) {}

  const DeviceIndex device;
  cistern::CachingAllocator& allocator;
  TorchPools pools;
  History history;
};

}  // namespace cistern_torch
