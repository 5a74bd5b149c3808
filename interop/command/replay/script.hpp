// A recorded program made ready to be replayed. Its allocations are renumbered into slots that are
// used again. So the loop touches no more memory than the most blocks that live at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interop/recording/recording_model.hpp"

namespace cistern::command {

enum class StepKind : std::uint8_t {
  kAllocate,
  kFree,           ///< in the order of the block's stream
  kFreeWhileUsed,  ///< the program's free of a block that other streams still use
  kUsesEnd,        ///< of a block that was freed while used
};

/// Whether the program frees a block at it.
inline bool isFree(StepKind kind) {
  return kind == StepKind::kFree || kind == StepKind::kFreeWhileUsed;
}

/// One event.
struct Step {
  std::uint64_t bytes = 0;     ///< asked for; only of kAllocate
  std::uint32_t after_us = 0;  ///< since the step before it; what exceeds 2^32 - 1 is cut off
  std::uint32_t slot = 0;      ///< < Script::slots
  std::uint32_t stream = 0;    ///< < Script::streams; only of kAllocate
  StepKind kind = StepKind::kAllocate;
};
static_assert(sizeof(Step) <= 24);

struct Script {
  std::string name;
  std::string file;          ///< the path that it was read from; empty if it is made up
  bool shares_name = false;  ///< with a script from another file, so that the file has to tell them
  std::vector<Step> steps;
  std::uint32_t slots = 0;  ///< the most blocks that live, or are still used, at once
  std::uint32_t streams = 0;
  std::vector<std::uint64_t> stream_names;  ///< the recording's own, by stream
  std::uint64_t peak_requested = 0;         ///< the most bytes, as asked, that live at once
  std::uint64_t duration_us = 0;  ///< that the program took, as recorded; 0 if no time was
  recording::StreamUses stream_uses = recording::StreamUses::kNotSaid;
};

/// Of the calls of a recording, which may have other events too: their time goes to the next call.
/// A recording without times becomes a script whose steps come at once.
Script makeScript(const recording::Recording& recording);

}  // namespace cistern::command
