// Copies between a device and the host's pinned memory, and clearing.
#include <cstring>
#include <vector>

#include "tests/device/contract_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kCopiedBytes = 3 * kMiB + 4'096;

Status copyOut(Device& device, const BusCopy& copy, Stream stream) {
  return device.copyOut(&copy, 1, stream);
}
Status copyIn(Device& device, const BusCopy& copy, Stream stream) {
  return device.copyIn(&copy, 1, stream);
}

// A backend may leave all three out.
bool copies(Device& device) {
  const Status nothing = device.clear(0, 0, {});
  return nothing.ok() || nothing.error().kind != ErrorKind::kNotSupported;
}

CONTRACT_TEST("what is copied out and back in is what was written", "[contract]", work) {
  Device& device = work.device();
  if (!copies(device)) return;
  ScopedStream stream(device);
  const Address from = device.malloc(kCopiedBytes).orThrow(),
                to = device.malloc(kCopiedBytes).orThrow();
  void* const host = device.hostMalloc(kCopiedBytes).orThrow();
  work.fill(stream, from, kCopiedBytes, 9);
  copyOut(device, {from, host, kCopiedBytes}, stream).orThrow();
  copyIn(device, {to, host, kCopiedBytes}, stream).orThrow();
  work.verify(stream, to, kCopiedBytes, 9);
  CHECK(work.mismatches() == 0);
  std::uint32_t second = 0;
  std::memcpy(&second, static_cast<std::byte*>(host) + 4, sizeof second);
  CHECK(second == 10);
  CHECK(copyOut(device, {from, host, 0}, stream).ok());
  device.hostFree(host).orThrow();
  device.free(from).orThrow();
  device.free(to).orThrow();
}

CONTRACT_TEST("copies of one call are all made", "[contract]", work) {
  Device& device = work.device();
  if (!copies(device)) return;
  ScopedStream stream(device);
  const Address from = device.malloc(kCopiedBytes).orThrow(),
                to = device.malloc(kCopiedBytes).orThrow();
  std::byte* const host = static_cast<std::byte*>(device.hostMalloc(kCopiedBytes).orThrow());
  work.fill(stream, from, kCopiedBytes, 9);
  std::vector<BusCopy> out, in;
  for (std::size_t at = 0, bytes = 4; at < kCopiedBytes;
       at += bytes, bytes = bytes * 3 / 8 * 4 + 4) {
    bytes = std::min(bytes, kCopiedBytes - at);
    out.push_back({from + at, host + at, bytes});
    in.insert(in.begin(), {to + at, host + at, bytes});
    out.push_back({from, host, 0});
  }
  REQUIRE(out.size() > 30);
  device.copyOut(out.data(), out.size(), stream).orThrow();
  device.copyIn(in.data(), in.size(), stream).orThrow();
  work.verify(stream, to, kCopiedBytes, 9);
  CHECK(work.mismatches() == 0);
  CHECK(device.copyOut(nullptr, 0, stream).ok());
  device.hostFree(host).orThrow();
  device.free(from).orThrow();
  device.free(to).orThrow();
}

CONTRACT_TEST("what is cleared is zero", "[contract]", work) {
  Device& device = work.device();
  if (!copies(device)) return;
  ScopedStream stream(device);
  const Address at = device.malloc(kCopiedBytes).orThrow();
  void* const host = device.hostMalloc(kCopiedBytes).orThrow();
  std::memset(host, 0x5a, kCopiedBytes);
  work.fill(stream, at, kCopiedBytes, 9);
  device.clear(at + 512, kCopiedBytes - 512, stream).orThrow();
  copyOut(device, {at, host, kCopiedBytes}, stream).orThrow();
  device.synchronizeStream(stream).orThrow();
  const auto* const bytes = static_cast<const unsigned char*>(host);
  CHECK(bytes[0] == 9);
  CHECK(std::vector<unsigned char>(bytes + 512, bytes + kCopiedBytes) ==
        std::vector<unsigned char>(kCopiedBytes - 512));
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
  CHECK(copyOut(*device, {at, pageable.data(), kMiB}, {}).error().kind == ErrorKind::kInvalidValue);
  void* const pinned = device->hostMalloc(kMiB).orThrow();
  CHECK_FALSE(copyIn(*device, {at, static_cast<std::byte*>(pinned) + 1, kMiB}, {}).ok());
  copyOut(*device, {at, pinned, kMiB}, {}).orThrow();
  const std::uint64_t queued = device->now();
  device->hostFree(pinned).orThrow();  // waits for the copy
  CHECK(device->now() - queued > kMiB / 60);
  device->free(at).orThrow();
}

}  // namespace
}  // namespace cistern::test
