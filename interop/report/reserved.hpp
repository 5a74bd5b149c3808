// The memory that the allocator has from the device: how events change it, and its ranges of
// addresses at one moment.
#pragma once

#include <cstdint>

#include "interop/recording/backed_addresses.hpp"
#include "interop/recording/recording_model.hpp"

namespace cistern::report {

/// Whether the allocator called the device for the event: it made a page or a segment, moved a
/// page, or gave one back.
inline bool isMemoryCall(const recording::Event& event) {
  return (takesMemory(event) || givesMemoryBack(event)) && !event.stays_mapped;
}

/// Bytes that are reserved, as events change them: of the device's memory, or of the host's. Limits
/// do not count pages of host memory.
class ReservedBytes {
 public:
  explicit ReservedBytes(Location location = Location::kDevice) : location_(location) {}
  /// An event that is not about reserved memory changes nothing. More may be given back than was
  /// taken: recordings can begin in the middle.
  void apply(const recording::Event& event) {
    if (event.location != location_) return;
    if (takesMemory(event)) bytes_ += event.value;
    if (givesMemoryBack(event)) bytes_ -= event.value < bytes_ ? event.value : bytes_;
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Location location_;
  std::uint64_t bytes_ = 0;
};

/// The bytes of the device's memory that are reserved after the first `done` events.
std::uint64_t reservedBytesAfter(const recording::Recording& recording, std::uint64_t done);

/// The most bytes of the host's memory that are reserved at a time.
std::uint64_t mostOnHost(const recording::Recording& recording);

/// The ranges that are reserved after the first `done` events, in the host's memory too.
recording::ReservedRanges reservedAfter(const recording::Recording& recording, std::uint64_t done);

}  // namespace cistern::report
