// How a message about a name that is not known ends.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "allocator/base/text.hpp"

namespace cistern::command {

/// "; did you mean NAME?" with the one of `names` that is nearest; nothing when none is near.
inline std::string didYouMean(std::string_view given, std::span<const std::string_view> names) {
  const std::string nearest(nearestOf(given, names));
  return nearest.empty() ? "" : "; did you mean " + nearest + "?";
}

}  // namespace cistern::command
