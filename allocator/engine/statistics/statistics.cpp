#include "cistern/statistics.hpp"

namespace cistern {

std::string_view statName(Stat stat) {
  static constexpr std::array<std::string_view, kStatCount> kNames = {
      "allocation",      "segment",        "active",       "inactive_split",
      "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
      "requested_bytes"};
  return kNames[std::size_t(stat)];
}

}  // namespace cistern
