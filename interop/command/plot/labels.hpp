// Labels that stand beside each other's ends, and would overlap where these are close.
#pragma once

#include <vector>

namespace cistern::command {

/// Where each label goes: as near to its place in `wanted` as may be, `height` apart, between `top`
/// and `bottom`; below `bottom` where there is no room for all.
std::vector<double> spread(const std::vector<double>& wanted, double height, double top,
                           double bottom);

}  // namespace cistern::command
