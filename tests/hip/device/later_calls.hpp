// Calls of the driver that Debian 12's header does not have, from the kernel's interface (UAPI).
#pragma once

#include <cstdint>

#include <linux/kfd_ioctl.h>

namespace played {

/// The interface's version from which the runtime tries virtual memory.
constexpr std::uint32_t kMinorVersion = 15;

struct AvailableMemory {
  std::uint64_t bytes;  ///< from the driver
  std::uint32_t gpu_id;
  std::uint32_t pad;
};
struct ExportDmaBuf {
  std::uint64_t handle;
  std::uint32_t flags;       ///< O_CLOEXEC
  std::uint32_t descriptor;  ///< from the driver
};
struct EnableRuntime {
  std::uint64_t debugger;
  std::uint32_t mode;
  std::uint32_t capabilities;  ///< from the driver
};

constexpr unsigned long kAvailableMemory = AMDKFD_IOWR(0x23, AvailableMemory);
constexpr unsigned long kExportDmaBuf = AMDKFD_IOWR(0x24, ExportDmaBuf);
constexpr unsigned long kEnableRuntime = AMDKFD_IOWR(0x25, EnableRuntime);

}  // namespace played
