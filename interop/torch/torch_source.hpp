// The allocator that a torch.cuda.MemPool was given, as the source of its pool's segments.
#pragma once

#include <memory>

#include "cistern/segment_source.hpp"
#include "releases/device_interface.hpp"

namespace cistern_torch {

/// Null for none, and for Cistern's own.
std::shared_ptr<cistern::SegmentSource> sourceOf(DeviceIndex device, CustomAllocator allocator);

}  // namespace cistern_torch
