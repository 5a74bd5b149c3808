// A summary of the figures of a table, for someone who sees such a table for the first time: the
// saving, and its cost.
#pragma once

#include <string>
#include <vector>

#include "interop/command/replay/measurement.hpp"

namespace cistern::command {

/// `rows`: every trace under every policy, the first of `policies` being the one that is compared
/// with the others. Only traces that all of them served count. Empty when there is none.
std::string summaryOf(const std::vector<Measurement>& rows,
                      const std::vector<std::string>& policies);

}  // namespace cistern::command
