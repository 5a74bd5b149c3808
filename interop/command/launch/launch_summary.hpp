// The summary of a run, as text for a person and as JSON.
#pragma once

#include <string>
#include <vector>

#include "interop/command/launch/child.hpp"
#include "interop/command/launch/records.hpp"

namespace cistern::command {

/// A few lines for each process that asked for device memory. One more line says how the program
/// ended, if it did not end by itself. With `all`, also the time of each kind of call.
std::string summaryText(const std::vector<Account>& accounts, const Ending& ending, bool all);
/// docs/run.md lists the keys.
std::string summaryJson(const std::vector<Account>& accounts, const Ending& ending);

}  // namespace cistern::command
