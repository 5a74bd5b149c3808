// Whether a failed request fits once some blocks are freed, by the addresses of all blocks.
#pragma once

#include <optional>
#include <vector>

#include "interop/recording/backed_addresses.hpp"
#include "interop/report/holders.hpp"
#include "interop/report/unused.hpp"

namespace cistern::report {

/// Whether the request fits without the blocks that have the stack and label of `holder`, in
/// whatever pool and on whatever stream. It fits into one free run of its pool and stream. It also
/// fits if the segments and units of pages that lie wholly free, given back to the device, make
/// `available` large enough. Nothing if only `available` would tell, and it is not known.
/// Pre: the recording knows addresses and reserved memory. Sizes in bytes.
std::optional<bool> fitsWithout(const Request& request, const recording::ReservedRanges& reserved,
                                const std::vector<Life>& lives, const Living& living,
                                const Holder& holder, std::optional<std::uint64_t> available);

}  // namespace cistern::report
