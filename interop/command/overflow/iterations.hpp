// The steps of a program's training, or its batches, found from its memory alone: a trace has no
// marks of them. They are called iterations here, as a Step is one event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cistern::command {

/// The event at which each iteration begins; the first begins at 0. `living` is as livingBytes.
///
/// An iteration ends where the living bytes are lowest in a valley between two hills. A valley is
/// within 2 % of the program's own floor, a hill is 10 % of the way to its peak or higher. The
/// floor is taken from the last three quarters of the events: a program makes what it keeps, such
/// as weights and an optimiser's state, at its beginning. A program without valleys is one
/// iteration.
std::vector<std::size_t> iterationStarts(const std::vector<std::uint64_t>& living);

}  // namespace cistern::command
