// The changes that would have made a failed request fit, in sentences.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "interop/recording/recording_model.hpp"
#include "interop/report/holders.hpp"
#include "interop/report/unused.hpp"

namespace cistern::report {

/// The state at a failure. Sizes in bytes.
struct Shortage {
  Request request;
  std::uint64_t available = 0;  ///< what the allocator could still have taken from the device
  bool knows_available = false;
  std::vector<recording::Unused> unused;
  std::vector<Holder> holders;  ///< most bytes first
  std::vector<Holder> leaking;  ///< those of them that keep growing, most bytes first
  bool explained = false;       ///< the allocator that failed has said what it lacked
  /// Whether the request fits without the blocks of a stack and label. Nothing if the addresses do
  /// not tell. May be empty.
  std::function<std::optional<bool>(const Holder&)> fits_without = {};
};

/// The name of a holder for people: its label, or else its innermost frame, or else its stream.
std::string nameOf(const recording::Recording& recording, const Holder& holder);

/// The surest way first; a leak without which the request still would not fit comes last. At least
/// one sentence, unless the shortage is explained.
std::vector<std::string> adviceFor(const recording::Recording& recording, const Shortage& shortage);

}  // namespace cistern::report
