// One statistic going up and down.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cistern/statistics.hpp"

namespace cistern {

inline void rise(StatValue& stat, std::uint64_t by) noexcept {
  stat.current += std::int64_t(by);
  stat.allocated += std::int64_t(by);
  stat.peak = std::max(stat.peak, stat.current);
}
inline void fall(StatValue& stat, std::uint64_t by) noexcept {
  stat.current -= std::int64_t(by);
  stat.freed += std::int64_t(by);
}

}  // namespace cistern
