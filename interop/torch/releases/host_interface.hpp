// PyTorch's interface of pinned host memory, as the newest release has it.
#pragma once

#include <functional>
#include <utility>

#include <ATen/core/CachingHostAllocator.h>

#include "release.hpp"

namespace cistern_torch {

/// Which streams a region of pinned memory catches.
using StreamFilter = std::function<bool(c10::Stream)>;

/// Before 2.11 a graph has no pinned memory of its own: there are no regions then.
class VersionedHostAllocator : public at::HostAllocator {
 public:
  virtual void beginRegion(TorchPoolId pool, StreamFilter filter) = 0;
  virtual void endRegion(TorchPoolId pool) = 0;
  virtual void letGo(TorchPoolId pool) = 0;

#if CISTERN_TORCH >= 211
  void begin_allocate_to_pool(TorchPoolId pool, StreamFilter filter) final {
    beginRegion(pool, std::move(filter));
  }
  void end_allocate_to_pool(TorchPoolId pool) final { endRegion(pool); }
  void release_pool(TorchPoolId pool) final { letGo(pool); }
#endif
};

}  // namespace cistern_torch
