// The text printed at the end of the process where the environment asks for it (CISTERN_STATS=1):
// statistics of each allocator, and the blocks that were never freed. Thread-safe.
#pragma once

#include <string>

#include "allocator/engine/engine.hpp"

namespace cistern {

/// The statistics and the blocks that live, for people; each line ends in a line end. With a
/// history, blocks are grouped by their stacks. Throws std::bad_alloc.
std::string exitReport(Engine& engine);

namespace exit_reports {

/// From now on the allocator is reported when the process exits, if the environment asks for it.
/// Throws std::bad_alloc.
void add(Engine& engine);
/// The allocator goes: it is reported now. No-op for one that was not added, or was reported.
void remove(Engine& engine) noexcept;

}  // namespace exit_reports
}  // namespace cistern
