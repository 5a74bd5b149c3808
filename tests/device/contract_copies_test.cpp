// Copies between a device and the host's pinned memory, and clearing.
#include <cstring>
#include <vector>

#include "tests/device/contract_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kBytes = 3 * kMiB + 4'096;

// A backend may leave all three out.
bool copies(Device& device) {
  const Status nothing = device.clear(0, 0, {});
  return nothing.ok() || nothing.error().kind != ErrorKind::kNotSupported;
}

CONTRACT_TEST("what is copied out and back in is what was written", "[contract]", work) {
  Device& device = work.device();
  if (!copies(device)) return;
  ScopedStream stream(device);
  const Address from = device.malloc(kBytes).orThrow(), to = device.malloc(kBytes).orThrow();
  void* const host = device.hostMalloc(kBytes).orThrow();
  work.fill(stream, from, kBytes, 9);
  device.copyOut(host, from, kBytes, stream).orThrow();
  device.copyIn(to, host, kBytes, stream).orThrow();
  work.verify(stream, to, kBytes, 9);
  CHECK(work.mismatches() == 0);
  std::uint32_t second = 0;
  std::memcpy(&second, static_cast<std::byte*>(host) + 4, sizeof second);
  CHECK(second == 10);
  CHECK(device.copyOut(host, from, 0, stream).ok());
  device.hostFree(host).orThrow();
  device.free(from).orThrow();
  device.free(to).orThrow();
}

CONTRACT_TEST("what is cleared is zero", "[contract]", work) {
  Device& device = work.device();
  if (!copies(device)) return;
  ScopedStream stream(device);
  const Address at = device.malloc(kBytes).orThrow();
  void* const host = device.hostMalloc(kBytes).orThrow();
  std::memset(host, 0x5a, kBytes);
  work.fill(stream, at, kBytes, 9);
  device.clear(at + 512, kBytes - 512, stream).orThrow();
  device.copyOut(host, at, kBytes, stream).orThrow();
  device.synchronizeStream(stream).orThrow();
  const auto* const bytes = static_cast<const unsigned char*>(host);
  CHECK(bytes[0] == 9);
  CHECK(std::vector<unsigned char>(bytes + 512, bytes + kBytes) ==
        std::vector<unsigned char>(kBytes - 512));
  device.hostFree(host).orThrow();
  device.free(at).orThrow();
}

TEST_CASE("a simulated device pins no more than its host admits", "[device]") {
  sim::SimConfig config;
  config.pinned_capacity = 3 * kMiB;
  const auto device = sim::makeDevice(config);
  CHECK(device->pinnableBytes() == 3 * kMiB);
  void* const first = device->hostMalloc(2 * kMiB).orThrow();
  CHECK(device->pinnableBytes() == kMiB);
  CHECK(device->hostMalloc(2 * kMiB).error().kind == ErrorKind::kOutOfMemory);
  device->hostFree(first).orThrow();
  CHECK(device->pinnableBytes() == 3 * kMiB);
}

TEST_CASE("a simulated device copies from and to pinned memory alone", "[device]") {
  const auto device = sim::makeDevice();
  const Address at = device->malloc(kMiB).orThrow();
  std::vector<std::byte> pageable(kMiB);
  CHECK(device->copyOut(pageable.data(), at, kMiB, {}).error().kind == ErrorKind::kInvalidValue);
  void* const pinned = device->hostMalloc(kMiB).orThrow();
  CHECK_FALSE(device->copyIn(at, static_cast<std::byte*>(pinned) + 1, kMiB, {}).ok());
  device->copyOut(pinned, at, kMiB, {}).orThrow();
  const std::uint64_t queued = device->now();
  device->hostFree(pinned).orThrow();  // waits for the copy
  CHECK(device->now() - queued > kMiB / 60);
  device->free(at).orThrow();
}

}  // namespace
}  // namespace cistern::test
