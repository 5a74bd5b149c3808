// The device memory of a process, and the free memory of each GPU, as NVIDIA's management library
// knows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace cistern::command {

struct DeviceUse {
  std::uint64_t free_bytes = 0;
  std::optional<std::uint64_t> process_bytes;  ///< none: the library does not list the process
};

/// One for each GPU, by its number; empty without the library. The library cannot see processes of
/// other PID namespaces than its own.
std::vector<DeviceUse> deviceUse(pid_t process);

/// A line for each GPU on which that changed, indented, each with a line end.
std::string changeText(const std::vector<DeviceUse>& before, const std::vector<DeviceUse>& after);

}  // namespace cistern::command
