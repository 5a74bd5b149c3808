// The segments and blocks of a recording at its end, in the form in which PyTorch tells them: the
// blocks of a segment cover it.
#pragma once

#include <cstdint>
#include <vector>

#include "interop/recording/backing_changes.hpp"
#include "interop/recording/recording_model.hpp"

namespace cistern::recording {

struct EndBlock {
  std::uint64_t bytes = 0;
  std::uint64_t requested = 0;  ///< 0: it is free
  std::uint32_t stack = 0;
};

struct EndSegment {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t pool = 0;
  std::uint32_t stream = 0;
  bool expandable = false;
  std::vector<EndBlock> blocks;
};

/// By address. A block that lies in another block, or has no memory after `changes`, is left out.
/// Without has_reserved one segment holds all blocks that ever were. Pre: recording.has_addresses;
/// `changes` are backingChanges() of the device's memory.
std::vector<EndSegment> endState(const Recording& recording,
                                 const std::vector<BackingChange>& changes);

}  // namespace cistern::recording
