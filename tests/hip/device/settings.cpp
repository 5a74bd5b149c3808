#include "tests/hip/device/settings.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace played {
namespace {

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 10);
}

Settings read() {
  Settings read;
  read.gpus = int(std::clamp<std::uint64_t>(number("PLAYED_GPU_COUNT", 1), 1, 8));
  read.vram_bytes = number("PLAYED_GPU_VRAM_MIB", read.vram_bytes >> 20) << 20;
  read.lag_ns = number("PLAYED_GPU_LAG_US", 0) * 1000;
  read.open_vram = number("PLAYED_GPU_OPEN_VRAM", 0) != 0;
  read.traces = number("PLAYED_GPU_TRACE", 0) != 0;
  return read;
}

}  // namespace

const Settings& settings() {
  static const Settings all = read();
  return all;
}

void complain(const char* format, ...) {
  char line[512];
  std::va_list arguments;
  va_start(arguments, format);
  (void)std::vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  (void)std::fprintf(stderr, "played GPU: %s\n", line);
}

}  // namespace played
