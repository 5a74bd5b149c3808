// One statistic, as C has it.
#pragma once

#include "cistern/cistern.h"
#include "cistern/statistics.hpp"

namespace cistern::capi {

inline cistern_stat_t valueOf(const StatValue& value) {
  return {value.current, value.peak, value.allocated, value.freed};
}

}  // namespace cistern::capi
