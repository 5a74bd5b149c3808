// The report of an allocator that is out of memory, in a replay's terms: the trace's own names of
// streams, and the option that would have helped.
#pragma once

#include <string>

#include "cistern/report.hpp"
#include "interop/command/replay/script.hpp"
#include "interop/command/replay/stage.hpp"

namespace cistern::command {

std::string outOfMemoryText(const OutOfMemoryReport& report, const Script& script,
                            const Stage& stage);

}  // namespace cistern::command
