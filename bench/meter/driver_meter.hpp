// What libcistern_driver_meter.so counts: calls that map memory, on the program's main thread [0]
// and on all others [1].
#pragma once

#include <cstdint>

extern "C" {

struct CisternMeter {
  std::uint64_t calls[2];
  std::uint64_t nanoseconds[2];
};

/// Whether pages are made exportable where the program asks for it; at first they are.
void cisternMeterExportable(bool asked);
/// All since the program began.
void cisternMeterRead(CisternMeter* meter);
}
