// The time of the driver's own calls on this machine, for the summary.
#pragma once

#include "interop/preload/driver/driver.hpp"

namespace cistern::preload::GPU_NAMESPACE {

/// Times a few cudaMallocs and cudaFrees of the driver's, once a process, where a record is kept.
/// Pre: a context is current, and nothing is captured.
void measurePrices(const Functions& driver) noexcept;

}  // namespace cistern::preload::GPU_NAMESPACE
