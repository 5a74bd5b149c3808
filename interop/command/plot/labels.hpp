// Labels that stand beside each other's ends, and would overlap where these are close.
#pragma once

#include <vector>

namespace cistern::command {

/// The place of each label: as near as possible to its place in `wanted`, `height` apart, between
/// `top` and `bottom`. Labels go below `bottom` if there is no room for all.
std::vector<double> spread(const std::vector<double>& wanted, double height, double top,
                           double bottom);

}  // namespace cistern::command
