// The device memory that a sleeping process needs to wake, in a file of /dev/shm until it does. The
// driver tells nobody, and cannot restore a process once that has run out of memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "interop/command/sleep/device_use.hpp"
#include "interop/command/sleep/named_process.hpp"

namespace cistern::command {

/// Keeps the bytes that the process has on each GPU. Returns why that cannot be; empty if it is
/// kept, or if no GPU lists the process.
std::string keepNeed(const NamedProcess& process, const std::vector<DeviceUse>& use);
/// The bytes for each GPU, by its number; empty if nothing is kept. A file of another user than the
/// process's and this command's is not believed.
std::vector<std::uint64_t> needOf(const NamedProcess& process);
void forgetNeed(const NamedProcess& process);

}  // namespace cistern::command
