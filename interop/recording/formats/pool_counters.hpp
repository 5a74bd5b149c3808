// Bytes by pool over time, in so few values that a viewer draws them at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "interop/recording/recording_model.hpp"

namespace cistern::recording {

/// Asked for and reserved at one moment.
struct PoolSample {
  std::uint64_t time_us = 0;
  std::vector<std::uint64_t> asked, reserved;  ///< by pool
};

/// The moments of the most bytes asked for and of the most reserved in each of at most `columns`
/// stretches of time, and the end. They rise in time, and each pool's values add up to the whole.
/// Pools beyond the first `most_pools` count to the last of these. `reserved` is empty without
/// has_reserved. Pre: columns > 0, most_pools > 0.
std::vector<PoolSample> poolSamples(const Recording& recording, std::size_t columns,
                                    std::size_t most_pools);

}  // namespace cistern::recording
