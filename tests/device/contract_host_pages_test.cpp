// The device contract: pages of the host's memory. Nothing to show on a device that makes none.
#include "allocator/device/sim/costs.hpp"
#include "tests/device/contract_support.hpp"
#include "tests/device/sim_support.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {
namespace {

/// Whether the device makes pages of host memory: it claims them, and its driver does not refuse
/// the first.
bool makesHostPages(Device& device) {
  const VirtualMemoryCapability pages = device.virtualMemory();
  if (!pages.supported || !pages.host_pages) return false;
  const Result<Page> tried = device.createHostPage(pages.granularity);
  if (tried) device.releasePage(tried.value()).orThrow();
  return tried.ok();
}

}  // namespace

CONTRACT_TEST("a device that claims no pages of host memory refuses them", "[contract][vmm][host]",
              work) {
  Device& device = work.device();
  if (device.virtualMemory().host_pages) return;
  const Result<Page> refused = device.createHostPage(2 * kMiB);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == ErrorKind::kNotSupported);
  CHECK(refused.error().call == Call::kCreateHostPage);
}

CONTRACT_TEST("a page of host memory is used as any page", "[contract][vmm][host]", work) {
  Device& device = work.device();
  if (!makesHostPages(device)) return skipped("no pages of host memory on " + device.backend());
  ScopedPages pages(device);
  const std::uint64_t bytes = 4 * pages.granularity();
  const Address range = pages.reserve(2 * bytes);
  pages.map(range, bytes, pages.hostPage(bytes));
  pages.map(range + bytes, bytes, pages.page(bytes));  // the two lie side by side
  work.fill(Stream{}, range, 2 * bytes, 11);
  work.verify(Stream{}, range, 2 * bytes, 11);
  CHECK(work.mismatches() == 0);
}

CONTRACT_TEST("a page of host memory keeps its contents when it moves", "[contract][vmm][host]",
              work) {
  Device& device = work.device();
  if (!makesHostPages(device)) return skipped("no pages of host memory on " + device.backend());
  ScopedPages pages(device);
  const std::uint64_t bytes = pages.granularity();
  const Address range = pages.reserve(2 * bytes);
  const Page page = pages.hostPage(bytes);
  pages.map(range, bytes, page);
  work.fill(Stream{}, range, bytes, 5);
  device.synchronizeDevice().orThrow();
  pages.unmap(range, bytes);
  pages.map(range + bytes, bytes, page);
  work.verify(Stream{}, range + bytes, bytes, 5);
  CHECK(work.mismatches() == 0);
}

CONTRACT_TEST("a page of host memory takes nothing of the device's", "[contract][vmm][host]",
              work) {
  Device& device = work.device();
  if (!makesHostPages(device)) return skipped("no pages of host memory on " + device.backend());
  ScopedPages pages(device);
  const std::uint64_t before = device.memoryInfo().orThrow().free_bytes;
  constexpr std::uint64_t kBytes = 256 * kMiB, kOthers = 128 * kMiB;
  const Page page = pages.hostPage(kBytes);
  CHECK(device.memoryInfo().orThrow().free_bytes + kOthers > before);
  pages.release(page);
}

CONTRACT_TEST("work on host memory is captured, and replays there",
              "[contract][vmm][host][capture]", work) {
  Device& device = work.device();
  if (!makesHostPages(device)) return skipped("no pages of host memory on " + device.backend());
  ScopedPages pages(device);
  ScopedStream stream(device);
  const std::uint64_t bytes = pages.granularity();
  const Address range = pages.reserve(bytes);
  pages.map(range, bytes, pages.hostPage(bytes));
  device.beginCapture(stream, CaptureMode::kThreadLocal).orThrow();
  work.fill(stream, range, bytes, 3);
  const DeviceGraph graph = device.endCapture(stream).orThrow();
  const DeviceGraphExec exec = device.instantiate(graph).orThrow();
  device.launchGraph(exec, stream).orThrow();
  device.synchronizeStream(stream).orThrow();
  work.verify(stream, range, bytes, 3);
  CHECK(work.mismatches() == 0);
  device.destroyGraphExec(exec).orThrow();
  device.destroyGraph(graph).orThrow();
}

// ---- What only the simulated device promises
// -----------------------------------------------------

TEST_CASE("host memory runs out by its own capacity", "[sim][host]") {
  SimConfig config;
  config.capacity = kGiB;
  config.host_page_capacity = 3 * kPage;
  SimDevice device(config);
  CHECK(device.hostPageBytesLeft() == 3 * kPage);
  const Page page = device.createHostPage(2 * kPage).orThrow();
  CHECK(device.hostPageBytesLeft() == kPage);
  CHECK(device.memoryInfo().orThrow().free_bytes == kGiB);
  const Result<Page> refused = device.createHostPage(2 * kPage);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == ErrorKind::kOutOfMemory);
  CHECK(device.createPage(2 * kPage).ok());
  const Address range = device.reserve(2 * kPage).orThrow();
  device.map(range, 2 * kPage, page).orThrow();
  device.releasePage(page).orThrow();
  CHECK(device.hostPageBytesLeft() == kPage);  // while it is mapped
  device.unmap(range, 2 * kPage).orThrow();
  CHECK(device.hostPageBytesLeft() == 3 * kPage);
  device.audit();
}

TEST_CASE("a page of host memory is not exported", "[sim][host]") {
  SimConfig config;
  config.fabric = true;
  SimDevice device(config);
  const Page page = device.createHostPage(kPage).orThrow();
  const Result<int> file = device.exportPage(page);
  REQUIRE_FALSE(file.ok());
  CHECK(file.error().kind == ErrorKind::kNotSupported);
  CHECK_FALSE(device.exportToFabric(page).ok());
}

TEST_CASE("work lasts longer by the bus's time for what it touches of the host", "[sim][host]") {
  for (const bool detects : {true, false}) {
    SimConfig config;
    config.race_detector = detects;
    SimDevice device(config);
    const Address range = device.reserve(2 * kPage).orThrow();
    mapWithAccess(device, range, device.createPage(kPage).orThrow());
    mapWithAccess(device, range + kPage, device.createHostPage(kPage).orThrow());
    const auto takes = [&](std::vector<Access> accesses) {
      device.synchronizeDevice().orThrow();
      const std::uint64_t before = device.now();
      launch(device, Stream{}, "work", std::move(accesses), 1'000);
      const std::uint64_t began = device.now();
      device.synchronizeDevice().orThrow();
      CHECK(began - before == sim::cost::kLaunch);
      return device.now() - began;
    };
    CHECK(takes({writes(range)}) == 1'000);
    CHECK(takes({reads(range, 2 * kPage)}) == 1'000 + kPage / 82);
    CHECK(takes({reads(range + kPage), writes(range + kPage)}) == 1'000 + 2 * kPage / 82);
  }
}

TEST_CASE("a replay pays for host memory at each launch", "[sim][host]") {
  SimDevice device;
  const Stream stream = newStream(device);
  const Address range = device.reserve(kPage).orThrow();
  mapWithAccess(device, range, device.createHostPage(kPage).orThrow());
  device.beginCapture(stream, CaptureMode::kThreadLocal).orThrow();
  launch(device, stream, "work", {writes(range)});
  const DeviceGraphExec exec = endAndInstantiate(device, stream);
  for (int i = 0; i < 2; ++i) {
    device.launchGraph(exec, stream).orThrow();
    const std::uint64_t began = device.now();
    device.synchronizeStream(stream).orThrow();
    CHECK(device.now() - began == 1'000 + kPage / 82);
  }
}

TEST_CASE("calls for host memory cost what was measured", "[sim][host]") {
  constexpr std::uint64_t kMeasured = 32 * kMiB;
  SimDevice device;
  const auto us = [&](auto call) {
    const std::uint64_t before = device.modelledNanoseconds();
    call();
    return double(device.modelledNanoseconds() - before) / 1e3;
  };
  const Address range = device.reserve(kMeasured).orThrow();
  Page page;
  CHECK(us([&] { page = device.createHostPage(kMeasured).orThrow(); }) ==
        Catch::Approx(27).epsilon(0.01));
  CHECK(us([&] { device.map(range, kMeasured, page).orThrow(); }) == Catch::Approx(8));
  CHECK(us([&] { device.setAccess(range, kMeasured).orThrow(); }) ==
        Catch::Approx(761).epsilon(0.01));
  CHECK(us([&] { device.unmap(range, kMeasured).orThrow(); }) == Catch::Approx(148).epsilon(0.01));
  CHECK(us([&] { device.releasePage(page).orThrow(); }) == Catch::Approx(580).epsilon(0.01));
}

}  // namespace cistern::test
