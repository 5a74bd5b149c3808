// The parts of the report on a request that no memory was found for. OutOfMemoryReport::text() puts
// them together; a replay has its own names for streams, and its own advice.
#pragma once

#include <functional>
#include <string>

#include "cistern/report.hpp"

namespace cistern {

/// Returns how a text calls a stream: "stream 0x2".
using StreamName = std::function<std::string(Stream stream)>;

/// All but the advice: who asked for what, and who holds what. Each line ends in a line end.
std::string figuresOf(const OutOfMemoryReport& report, const StreamName& name_of);

/// Whether the block may lie on the device and on the host, by overflow: a large one may, but for a
/// capture's.
bool mayLieInBoth(const OutOfMemoryReport& report);

/// The bytes that overflow and the host leave.
std::uint64_t roomBeside(const OutOfMemoryReport& report);

/// Why free memory did not serve the request, a sentence for each reason, each with a space behind
/// it. Empty if there was too little in any case.
std::string whyUnused(const OutOfMemoryReport& report);

}  // namespace cistern
