// Characters in UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cistern {

/// One character of UTF-8; no bytes if the text does not begin with one.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

/// Pre: `text` is not empty.
Character firstCharacter(std::string_view text);

}  // namespace cistern
