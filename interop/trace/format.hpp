// Tells the formats of traces apart by the beginning of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cistern::trace {

enum class Format : std::uint8_t { kCistern, kRmm, kPytorch, kSnapshot };

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
