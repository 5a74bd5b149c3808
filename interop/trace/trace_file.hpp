// A trace file in memory, uncompressed. The one place that reads files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "interop/trace/trace.hpp"

namespace cistern::trace {

/// The longest uncompressed file taken: places and lengths inside a file are 32 bits.
inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 31;

/// The path that names the standard input.
inline constexpr std::string_view kStandardInput = "-";

/// The whole content of a plain or gzip file. Throws TraceError if the file cannot be read, is
/// empty, is a device, or is longer than kMaxFileBytes. Throws it at the first bytes of a plain
/// file that is in no format. Throws it also if its gzip data is damaged, ends early, is followed
/// by something else or unpacks to more than `limits` allow.
std::string loadFile(const std::filesystem::path& path, const ReadLimits& limits = {});

/// The file's name in errors.
std::string nameInErrors(const std::filesystem::path& path);

/// The file's name without folders and without ".gz" and one more extension.
std::string stemOf(const std::filesystem::path& path);

}  // namespace cistern::trace
