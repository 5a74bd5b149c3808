// The simulated device's fault plan: which calls fail, and that a failed call changed nothing.
#include "tests/device/sim_support.hpp"

namespace cistern::test {
namespace {

/// How many of `calls` memoryInfo calls succeed before one fails.
int callsUntilFailure(SimDevice& device, int calls) {
  for (int i = 0; i < calls; ++i) {
    if (!device.memoryInfo().ok()) return i;
  }
  return calls;
}

}  // namespace

TEST_CASE("the nth call of a kind fails, once", "[sim][fault]") {
  SimDevice device;
  device.faults().failNth(Call::kCreatePage, 3, ErrorKind::kOther);
  CHECK(device.createPage(kPage).ok());
  CHECK(device.malloc(kPage).ok());
  CHECK(device.createPage(kPage).ok());
  const auto failed = device.createPage(kPage);
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.error().kind == ErrorKind::kOther);
  CHECK(failed.error().call == Call::kCreatePage);
  CHECK(device.createPage(kPage).ok());
  CHECK(device.faults().hits(Call::kCreatePage) == 1);
  CHECK(device.faults().hits() == 1);
}

TEST_CASE("the nth call of any kind fails, once", "[sim][fault]") {
  SimDevice device;
  device.faults().failNthOfAll(2);
  CHECK(device.malloc(kPage).ok());
  CHECK(kindOf(device.createPage(kPage)) == ErrorKind::kOutOfMemory);
  CHECK(device.createPage(kPage).ok());
  CHECK(device.faults().hits() == 1);
}

TEST_CASE("exchanging the capture mode fails only when asked for by name", "[sim][fault]") {
  SimDevice device;
  device.faults().failNthOfAll(1);
  device.faults().failRandomly(1.0, 1);
  { RelaxedCaptureMode relaxed(device); }
  CHECK(device.faults().hits() == 0);
  device.faults().clear();
  device.faults().failNth(Call::kExchangeCaptureMode, 1, ErrorKind::kOther);
  CHECK_FALSE(device.exchangeCaptureMode(CaptureMode::kRelaxed).ok());
  CHECK(device.exchangeCaptureMode(CaptureMode::kGlobal).orThrow() == CaptureMode::kGlobal);
}

TEST_CASE("every call of a kind fails until the plan is cleared", "[sim][fault]") {
  SimDevice device;
  device.faults().failAll(Call::kMap, ErrorKind::kNotSupported);
  const Address range = device.reserve(kPage).orThrow();
  const Page page = device.createPage(kPage).orThrow();
  for (int i = 0; i < 3; ++i) {
    CHECK(kindOf(device.map(range, kPage, page)) == ErrorKind::kNotSupported);
  }
  device.faults().clear();
  device.map(range, kPage, page).orThrow();
  CHECK(device.faults().hits(Call::kMap) == 3);
}

TEST_CASE("random faults follow the seed", "[sim][fault]") {
  const auto run = [](std::uint64_t seed) {
    SimDevice device;
    device.faults().failRandomly(0.1, seed);
    std::vector<int> gaps;
    for (int i = 0; i < 20; ++i) gaps.push_back(callsUntilFailure(device, 1'000));
    return gaps;
  };
  CHECK(run(1) == run(1));
  CHECK(run(1) != run(2));
  SimDevice device;
  device.faults().failRandomly(0.25, 3);
  for (int i = 0; i < 4'000; ++i) (void)device.memoryInfo();
  CHECK(device.faults().hits() > 800);
  CHECK(device.faults().hits() < 1'200);
}

TEST_CASE("a failed call changes nothing", "[sim][fault]") {
  SimDevice device;
  const Address range = device.reserve(2 * kPage).orThrow();
  const Page page = device.createPage(kPage).orThrow();
  mapWithAccess(device, range, page);
  const Address memory = device.malloc(kPage).orThrow();
  const std::uint64_t free_bytes = device.memoryInfo().orThrow().free_bytes;
  const auto failing = [&](Call call) { device.faults().failNth(call, 1, ErrorKind::kOther); };
  failing(Call::kMalloc);
  CHECK_FALSE(device.malloc(kPage).ok());
  failing(Call::kFree);
  CHECK_FALSE(device.free(memory).ok());
  failing(Call::kUnmap);
  CHECK_FALSE(device.unmap(range, kPage).ok());
  failing(Call::kReleasePage);
  CHECK_FALSE(device.releasePage(page).ok());
  failing(Call::kMap);
  CHECK_FALSE(device.map(range + kPage, kPage, page).ok());
  failing(Call::kFreeReservation);
  CHECK_FALSE(device.freeReservation(range, 2 * kPage).ok());
  CHECK(device.memoryInfo().orThrow().free_bytes == free_bytes);
  launch(device, Stream{}, "use", {writes(range), writes(memory)});
  mapWithAccess(device, range + kPage, page);
  device.audit();
}

TEST_CASE("an endCapture that fails has ended the capture", "[sim][fault]") {
  SimDevice device;
  const Stream stream = newStream(device);
  device.beginCapture(stream, CaptureMode::kGlobal).orThrow();
  device.faults().failNth(Call::kEndCapture, 1, ErrorKind::kOther);
  CHECK_FALSE(device.endCapture(stream).ok());
  CHECK(device.captureInfo(stream).orThrow().status == CaptureStatus::kNone);
  device.beginCapture(stream, CaptureMode::kGlobal).orThrow();
  CHECK(device.endCapture(stream).ok());
}

}  // namespace cistern::test
