// The settings of the played GPU, read once from the environment. README.md has the table.
#pragma once

#include <cstdint>

namespace played {

struct Settings {
  int gpus = 1;                                       ///< PLAYED_GPU_COUNT
  std::uint64_t vram_bytes = std::uint64_t{8} << 30;  ///< PLAYED_GPU_VRAM_MIB, of each GPU
  bool open_vram = false;                             ///< PLAYED_GPU_OPEN_VRAM: to all, over PCIe
  std::uint64_t lag_ns = 0;                           ///< PLAYED_GPU_LAG_US: the least time of work
  bool traces = false;                                ///< PLAYED_GPU_TRACE: each packet is written
};

const Settings& settings();

/// Writes "played GPU: …" to the standard error output.
[[gnu::format(printf, 1, 2)]] void complain(const char* format, ...);

/// The same, if the settings ask for it.
#define PLAYED_TRACE(...)                                             \
  do {                                                                \
    if (::played::settings().traces) ::played::complain(__VA_ARGS__); \
  } while (false)

}  // namespace played
