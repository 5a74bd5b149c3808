// Calls to a real device whose answers the contract suite takes for granted: which kind a failure
// is, what a thread that never touched the device may do, and the driver's own pool.
#include <thread>

#include "allocator/base/bytes.hpp"
#include "tests/gpu/vendors.hpp"
#include "tests/support/catch.hpp"

using namespace cistern;
using namespace cistern::test;

namespace {

/// A page behind an address and back, every step of which must work.
void mapOnce(Device& device, std::size_t bytes) {
  const Address address = device.reserve(bytes).orThrow();
  const Page page = device.createPage(bytes).orThrow();
  device.map(address, bytes, page).orThrow();
  device.setAccess(address, bytes).orThrow();
  device.unmap(address, bytes).orThrow();
  device.releasePage(page).orThrow();
  device.freeReservation(address, bytes).orThrow();
}

}  // namespace

TEST_CASE("virtual memory works on a thread that never used the device", "[gpu]") {
  for (const auto& device : presentDevices()) {
    if (!device->virtualMemory().supported) {
      skipped("no virtual memory on " + device->backend());
      continue;
    }
    std::string failed;
    std::thread([&] {
      try {
        mapOnce(*device, device->virtualMemory().granularity);
      } catch (const std::exception& error) {
        failed = error.what();
      }
    }).join();
    CHECK(failed == "");
  }
}

TEST_CASE("more memory than the device has is out of memory", "[gpu]") {
  for (const auto& device : presentDevices()) {
    const std::size_t too_much = 2 * device->memoryInfo().orThrow().total_bytes;
    CHECK(device->malloc(too_much).error().kind == ErrorKind::kOutOfMemory);
    if (!device->virtualMemory().supported) continue;
    const std::size_t page = roundUp(too_much, device->virtualMemory().granularity);
    CHECK(device->createPage(page).error().kind == ErrorKind::kOutOfMemory);
  }
}

TEST_CASE("no event is an invalid handle", "[gpu]") {
  for (const auto& device : presentDevices()) {
    CHECK(device->queryEvent(Event{}).error().kind == ErrorKind::kInvalidHandle);
    CHECK(device->recordEvent(Event{}, Stream{}).error().kind == ErrorKind::kInvalidHandle);
  }
}

TEST_CASE("the driver's pool keeps what is freed until it is reset", "[gpu]") {
  for (const auto& device : presentDevices()) {
    if (!device->driverPoolSupported()) {
      skipped("no driver's pool on " + device->backend());
      continue;
    }
    const Stream stream = device->createStream().orThrow();
    const Address address = device->mallocAsync(64 * kMiB, stream).orThrow();
    device->freeAsync(address, stream).orThrow();
    device->synchronizeStream(stream).orThrow();
    const DriverPoolInfo kept = device->driverPool(false).orThrow();
    CHECK(kept.reserved_bytes >= 64 * kMiB);
    CHECK(kept.reserved_peak >= kept.reserved_bytes);
    const DriverPoolInfo reset = device->driverPool(true).orThrow();
    CHECK(reset.reserved_bytes == 0);
    CHECK(reset.reserved_peak == 0);
    device->destroyStream(stream).orThrow();
  }
}

TEST_CASE("exchanging the capture mode gives back the one before", "[gpu]") {
  for (const auto& device : presentDevices()) {
    const CaptureMode before = device->exchangeCaptureMode(CaptureMode::kRelaxed).orThrow();
    CHECK(device->exchangeCaptureMode(CaptureMode::kThreadLocal).orThrow() ==
          CaptureMode::kRelaxed);
    CHECK(device->exchangeCaptureMode(before).orThrow() == CaptureMode::kThreadLocal);
  }
}
