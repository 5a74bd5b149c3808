// Text from outside (names of files and programs, arguments), made fit to be shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cistern {

/// `text` on one line, with each byte that a terminal would act on rather than show as \xNN:
/// control characters, marks that turn the direction of writing, and what is no UTF-8.
std::string printable(std::string_view text);

/// The same, but line ends stay: for text of our own that may quote what is not.
std::string printableLines(std::string_view text);

/// `text`, which is printable, cut to so many columns of a terminal; the last is "…" where it was
/// cut.
std::string clipped(std::string_view text, std::size_t columns);

/// How many columns of a terminal `text` takes, which is printable.
std::size_t columnsOf(std::string_view text);

}  // namespace cistern
