// How much memory the host admits: what is left of it, and of the control group's limit.
#pragma once

#include <cstdint>
#include <string>

namespace cistern {

/// The bytes that this process could still take from the host: the least of what the kernel calls
/// available and what the limits of its control groups leave. Pages of files count as left, as the
/// kernel gives them up. UINT64_MAX where nothing tells; 0 if the process has no memory or file
/// descriptor to ask. Thread-safe. Reads a few files of the kernel's each time.
std::uint64_t hostBytesLeft() noexcept;
/// The same, less half a GiB for other programs: what pages of the device's may take.
std::uint64_t hostBytesLeftForPages() noexcept;
/// The bytes of host memory that the process has in use (resident); 0 where the kernel does not
/// tell. Thread-safe.
std::uint64_t residentBytes() noexcept;

/// The same for `process`, by its number or "self". `root` is for tests: "" has the system's own
/// files. Throws std::bad_alloc.
std::uint64_t hostBytesLeft(const std::string& root, const std::string& process);

}  // namespace cistern
