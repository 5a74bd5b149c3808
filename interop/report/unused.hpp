// Memory that is reserved and not in use at one moment, by the reason why a request could not use
// it. The recorder of a failure may have said it; otherwise the addresses of blocks tell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interop/recording/recording_model.hpp"
#include "interop/report/living.hpp"
#include "interop/report/reserved.hpp"

namespace cistern::report {

/// A request that found no memory. Sizes in bytes.
struct Request {
  std::uint64_t bytes = 0;
  std::uint32_t stream = 0, pool = 0, label = 0, stack = 0;
};

/// A free piece of memory.
struct Gap {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t pool = 0, stream = 0;
};

/// The free pieces, by address. `taken`: the blocks that have an address, pending ones too.
/// Mapped pages that lie side by side in one pool and stream are one piece; segments are not.
std::vector<Gap> gapsIn(const recording::ReservedRanges& reserved, const std::vector<Life>& lives,
                        const Living& living);

/// The unused memory, most bytes first, each reason once. The reasons are names of WhyUnused, as
/// "too_small"; without a request they are "free", "other_pool" and "incomplete".
std::vector<recording::Unused> unusedBy(const std::optional<Request>& request,
                                        const std::vector<Gap>& gaps,
                                        const std::vector<Life>& lives, const Living& living);

/// A sentence that says what such memory is.
std::string textOf(const recording::Unused& unused, bool has_request);

}  // namespace cistern::report
