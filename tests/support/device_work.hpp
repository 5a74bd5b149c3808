// Work that a test queues on a device, whichever backend it is: fill memory with a known pattern,
// check the pattern, be late. With it one test body runs on every backend.
// Read next: backends.cpp (which backends there are), sim_work.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cistern/device.hpp"
#include "cistern/types.hpp"

namespace cistern::test {

/// A device and the means to queue work on it. A failure to queue work is thrown (DeviceFailure).
/// Addresses and sizes are multiples of 4; word i of a pattern with seed s is s + i, modulo 2^32.
class DeviceWork {
 public:
  virtual ~DeviceWork() = default;
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  virtual Device& device() = 0;
  /// Whether a mapping of part of a page, or outside a reservation, is refused. HIP 6.4 maps the
  /// one, and says nothing of the other.
  virtual bool refusesWrongMappings() { return true; }
  /// Whether the runtime's captures are as CUDA's: forbidden calls break them, and all streams of
  /// one share its id and its end.
  virtual bool capturesAreStrict() { return true; }
  /// Whether this machine's processors do the device's work, so that little of it is enough.
  virtual bool isPlayed() { return false; }

  /// Queues writing the pattern of `seed` to [address, address + bytes). Does not wait. May be
  /// called while `stream` is capturing: then it is recorded.
  virtual void fill(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) = 0;
  /// Queues a check that [address, address + bytes) holds the pattern of `seed`; each wrong word
  /// adds one to what mismatches() returns. Does not wait. May be captured like fill.
  virtual void verify(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) = 0;
  /// Waits for all queued work; how many wrong words the checks have found so far, since the
  /// object was made. Not during a capture.
  virtual std::uint64_t mismatches() = 0;
  /// Queues a busy wait of about that long, so that what follows on the stream is late. May be
  /// captured like fill.
  virtual void delay(Stream stream, std::uint64_t nanoseconds) = 0;

 protected:
  DeviceWork() = default;
};

/// One for each backend that has a device on this machine; the simulated one is always first.
/// Each is made afresh, so that no test sees what another left on a simulated device.
std::vector<std::unique_ptr<DeviceWork>> presentBackends();

/// Runs `test` on every backend that is present.
template <class Test>
void forEachBackend(Test&& test) {
  for (auto& backend : presentBackends()) test(*backend);
}

}  // namespace cistern::test
