// Text from outside (names of files and programs, arguments), made safe to show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cistern {

/// `text` on one line. Each byte that a terminal would act on rather than show becomes \xNN:
/// control characters, marks that turn the direction of writing, and invalid UTF-8.
std::string printable(std::string_view text);

/// The same, but line ends stay: for text of our own that may quote text from outside.
std::string printableLines(std::string_view text);

/// `text`, which is printable, cut to that many columns of a terminal. The last is "…" if it was
/// cut.
std::string clipped(std::string_view text, std::size_t columns);

/// The same, but its beginning is cut, and the first column is "…": for a path.
std::string clippedInFront(std::string_view text, std::size_t columns);

/// How many columns of a terminal `text` takes, which is printable.
std::size_t columnsOf(std::string_view text);

}  // namespace cistern
