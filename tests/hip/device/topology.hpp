// The files in which the Linux driver describes the machine: one node for the processors, and one
// for each GPU. libhsakmt reads them before it opens a device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace played {

inline constexpr std::string_view kTopology = "/sys/devices/virtual/kfd/kfd/topology";
inline constexpr int kFirstRenderNode = 128;

/// The driver's number of a GPU. Never 0, which is a processor.
inline std::uint32_t gpuId(int gpu) { return 4660U + std::uint32_t(gpu); }

/// The text of the file at `path`, which is below kTopology; null if there is no such file. It
/// stays.
const std::string* topologyFile(std::string_view path);

/// The names in the folder at `path`; none if there is no such folder.
std::optional<std::vector<std::string>> topologyFolder(std::string_view path);

}  // namespace played
