// Names of functions, written down as a text.
#pragma once

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace cistern::preload {

using NameSet = std::unordered_set<std::string_view>;

/// The names in the text, which has a space or a line's end between two, and which stays.
inline NameSet nameSet(std::string_view text) {
  NameSet names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    if (end > at) names.insert(text.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

}  // namespace cistern::preload
