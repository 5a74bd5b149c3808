// Names for people: of stacks, labels, streams, pools.
#pragma once

#include <cstdint>
#include <string>

#include "interop/recording/recording_model.hpp"

namespace cistern::report {

/// The innermost frame of a stack that is the program's own, as "train.py:41 in step". If all are
/// of libraries, the innermost whose line is known, else the innermost.
std::string siteOf(const recording::Recording& recording, std::uint32_t stack);
/// A label with those around it, the outermost first: "step/forward". Empty for label 0.
std::string labelOf(const recording::Recording& recording, std::uint32_t label);
/// "the default stream", "stream 3", "stream 0x7f12".
std::string streamOf(const recording::Recording& recording, std::uint32_t stream);
/// "the default pool", "pool 0:4".
std::string poolOf(const recording::Recording& recording, std::uint32_t pool);
/// "1 block", "12 blocks".
std::string countedBlocks(std::uint64_t blocks);

}  // namespace cistern::report
