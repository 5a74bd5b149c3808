// Tells the formats of traces apart by the beginning of a file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cistern::trace {

enum class Format : std::uint8_t { kCistern, kRmm, kPytorch, kSnapshot };

/// The columns of an RMM log, which its first line names.
inline constexpr std::array<std::string_view, 6> kRmmColumns{"Thread",  "Time", "Action",
                                                             "Pointer", "Size", "Stream"};
/// Whether a line is that header, or meant to be: it names most of the columns.
bool looksLikeRmmHeader(std::string_view line);

/// So many bytes of a file tell its format, whatever follows.
inline constexpr std::size_t kFormatBytes = 8192;

/// Pre: `start` is the whole of an uncompressed file, or its first kFormatBytes at least, and not
/// empty. Throws TraceError if they begin no format; `file` is what errors call the file.
Format formatOf(std::string_view start, const std::string& file);

/// The name that a person gives a file of this format: "a Cistern trace".
const char* nameOf(Format format);

/// Throws the TraceError for a file of this format without an allocation.
[[noreturn]] void failEmpty(Format format, const std::string& file);
/// Throws the TraceError for a file of this format, which has no GPUs to choose from.
[[noreturn]] void failNoGpu(Format format, const std::string& file);

}  // namespace cistern::trace
