// A trace file in memory, uncompressed. The one place that reads files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace cistern::trace {

/// The longest uncompressed file taken. It bounds what a few kilobytes of hostile gzip can cost,
/// and lets places and lengths inside a file be 32 bits.
inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 31;

/// The whole content of a plain or gzip file. Throws TraceError if it cannot be read, is empty, is
/// longer than `limit`, or if its gzip data is damaged or ends early.
std::string loadFile(const std::filesystem::path& path, std::uint64_t limit = kMaxFileBytes);

/// The file's name without folders and without ".gz" and one more extension.
std::string stemOf(const std::filesystem::path& path);

}  // namespace cistern::trace
