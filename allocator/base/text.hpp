// Reading small texts: trimming, cutting, whole numbers. None of it throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cistern {

/// `text` without spaces and tabs at either end.
std::string_view trimmed(std::string_view text);

/// What stands before the first `separator`; `text` becomes what stands after it. Without one the
/// whole text is returned and `text` becomes empty. `found` says which.
std::string_view cutAt(std::string_view& text, char separator, bool& found);

/// Digits alone, as a number; nothing for any other text and for what does not fit.
std::optional<std::uint64_t> readCount(std::string_view text);

/// Digits with an optional point and exponent; nothing for any other text.
std::optional<double> readReal(std::string_view text);

/// How many single-letter insertions, deletions and replacements turn one text into the other.
std::size_t editDistance(std::string_view a, std::string_view b);

}  // namespace cistern
