// Small texts: trimming, cutting, whole numbers, the intended name of a misspelt one, and quoting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cistern {

/// `text` without spaces and tabs at either end.
std::string_view trimmed(std::string_view text);

/// Returns the text before the first `separator`; `text` becomes the rest after it. Without one,
/// returns the whole text, and `text` becomes empty. `found` tells which.
std::string_view cutAt(std::string_view& text, char separator, bool& found);

/// Digits alone, as a number; nothing for any other text, and for a number that does not fit.
std::optional<std::uint64_t> readCount(std::string_view text);

/// Digits with an optional point and exponent; nothing for any other text.
std::optional<double> readReal(std::string_view text);

/// How many insertions, deletions and replacements of a letter, and swaps of two neighbours, turn
/// one text into the other.
std::size_t editDistance(std::string_view a, std::string_view b);

/// Whether someone who wrote `given` may have meant `name`, whatever the case: a few letters apart,
/// or one within the other.
bool isNear(std::string_view given, std::string_view name);

/// The one of `names` that the writer of `given` most likely meant; empty when none is near.
std::string_view nearestOf(std::string_view given, std::span<const std::string_view> names);

/// As a string in JSON. Each byte that is no part of UTF-8 is written as its number: names come
/// from drivers, and need not be UTF-8.
std::string quotedJson(std::string_view text);

}  // namespace cistern
