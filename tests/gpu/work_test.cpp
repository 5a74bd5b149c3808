// The test work itself, on real devices: the other suites believe what it reports.
#include "allocator/base/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skipped.hpp"
#include "tests/support/vendor_work.hpp"

using namespace cistern;
using namespace cistern::test;

namespace {

std::vector<std::unique_ptr<DeviceWork>> vendorWork() {
  std::vector<std::unique_ptr<DeviceWork>> present;
  if (auto cuda = cudaWork()) present.push_back(std::move(cuda));
  if (auto hip = hipWork()) present.push_back(std::move(hip));
  if (present.empty()) skipped("no GPU");
  return present;
}

}  // namespace

TEST_CASE("verify counts each wrong word once, on a real device", "[gpu]") {
  for (const auto& work : vendorWork()) {
    Device& device = work->device();
    const std::size_t bytes = 8 * kMiB + 4;
    const Address memory = device.malloc(bytes).orThrow();
    const Stream stream = device.createStream().orThrow();
    work->fill(stream, memory, bytes, 7);
    work->verify(stream, memory, bytes, 7);
    CHECK(work->mismatches() == 0);
    work->fill(stream, memory + 4096, 40, 1'000'000);
    work->verify(stream, memory, bytes, 7);
    CHECK(work->mismatches() == 10);
    device.destroyStream(stream).orThrow();
    device.free(memory).orThrow();
  }
}

TEST_CASE("delay keeps a real stream busy without blocking the host", "[gpu]") {
  for (const auto& work : vendorWork()) {
    Device& device = work->device();
    const Stream stream = device.createStream().orThrow();
    work->delay(stream, 200'000'000);
    CHECK(!device.queryStream(stream).orThrow());
    device.synchronizeStream(stream).orThrow();
    CHECK(device.queryStream(stream).orThrow());
    device.destroyStream(stream).orThrow();
  }
}
