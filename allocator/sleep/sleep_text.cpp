// The outcome of a sleep and of a wake, as text.
#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "cistern/sleep.hpp"

namespace cistern {

const char* whyStayedName(WhyStayed why) {
  static constexpr const char* kNames[] = {"exported", "lent", "refused", "on host", "held"};
  return kNames[std::size_t(why)];
}

std::string SleepReport::text() const {
  std::string text =
      fmt::format("asleep: {} given back to the device, {} copied to the host, {} stayed\n",
                  formatBytes(released), formatBytes(saved), formatBytes(stayed));
  for (const StayedMemory& memory : why) {
    text += fmt::format("  {:#x}  {} of pool {{{}, {}}}: {}\n", memory.address,
                        formatBytes(memory.bytes), memory.pool.uuid, memory.pool.uid,
                        whyStayedName(memory.why));
  }
  return text;
}

std::string WakeReport::text() const {
  return fmt::format(
      "awake: {} taken from the device, {} copied from the host; {} stay pinned, {} resident\n",
      formatBytes(mapped), formatBytes(restored), formatBytes(pinned), formatBytes(resident));
}

}  // namespace cistern
