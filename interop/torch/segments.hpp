// Cistern's segments and blocks as torch.cuda.memory_snapshot has them.
#pragma once

#include <vector>

#include "device_state.hpp"

namespace cistern_torch {

/// Adds those of the pool, {0, 0} those of all, as far as they are memory of the device. A range of
/// addresses with holes is a segment for each part that has such memory. Throws Cistern's errors.
void addSegments(DeviceState& state, TorchPoolId pool, std::vector<theirs::SegmentInfo>& out);

}  // namespace cistern_torch
