// Handles of streams that come again, where others act, or the device refuses, at the moment at
// which it is told that one is forgotten or has come.
#include <thread>
#include <utility>
#include <vector>

#include "tests/engine/engine_support.hpp"
#include "tests/support/interposed_device.hpp"

namespace cistern::test {
namespace {

sim::SimConfig reusing(std::uint64_t capacity = kGiB) {
  sim::SimConfig config = simOf(capacity);
  config.reuse_streams = true;
  return config;
}

}  // namespace

TEST_CASE("a new stream that is being captured is there whoever sees the old one's end first",
          "[engine]") {
  const bool dropped = GENERATE(false, true);
  INFO("the record of the old one is dropped: " << dropped);
  sim::SimDevice sim(reusing(64 * kMiB));
  InterposedDevice device(sim);
  CachingAllocator allocator(device, Options::parse("background_thread:false"));
  const auto written = [&](std::size_t bytes, Stream stream, std::uint64_t ns) {
    void* const block = allocator.allocate(bytes, stream);
    const sim::Access access{toAddress(block), bytes, sim::AccessKind::kWrite};
    sim.launch(stream, {"write", {access}, ns, nullptr}).orThrow();
    return block;
  };
  std::vector<Stream> more;
  for (int i = 0; i < (dropped ? 600 : 1); ++i) more.push_back(sim.createStream().orThrow());
  const Stream other = more.back(), old = sim.createStream().orThrow();
  more.pop_back();
  for (const Stream one : more) allocator.free(allocator.allocate(kKiB, one));
  allocator.free(written(20 * kMiB, old, kLongNs));
  allocator.forgetStream(old);
  sim.destroyStream(old).orThrow();
  const Stream young = sim.createStream().orThrow();
  REQUIRE(young == old);
  sim.beginCapture(young, CaptureMode::kRelaxed).orThrow();
  bool waited = false;
  device.before = [&](Call call) {
    if (call != Call::kSynchronizeEvent || std::exchange(waited, true)) return;
    sim.advanceHost(2 * kLongNs);
    std::thread([&] {
      allocator.free(allocator.allocate(55 * kMiB, other));
      for (const Stream one : more) allocator.forgetStream(one);
    }).join();
  };
  allocator.free(allocator.allocate(kMiB, young));
  device.before = nullptr;
  CHECK(waited);
  sim.destroyGraph(sim.endCapture(young).orThrow()).orThrow();
  allocator.free(written(20 * kMiB, young, kLongNs));
  (void)written(50 * kMiB, other, 0);
  CHECK(sim.races().empty());
  const auto host = [&] { return allocator.memoryStats().host_bytes; };
  const std::uint64_t before = host();
  for (int i = 0; i < 100; ++i) allocator.free(allocator.allocate(kKiB, young));
  CHECK(host() <= before + 16 * kKiB);
}

TEST_CASE("a stream that the device would not let be forgotten is as it was", "[engine]") {
  SimRig rig("", reusing());
  std::vector<Stream> more;
  const Stream old = rig.stream();
  for (int i = 0; i < 600; ++i) more.push_back(rig.stream());
  void* const held = rig.allocator.allocate(kKiB, old);
  rig.allocator.forgetStream(old);
  for (const Stream one : more) {  // so that the record of the first one is dropped
    rig.allocator.free(rig.allocator.allocate(kKiB, one));
    rig.allocator.forgetStream(one);
    rig.sim().destroyStream(one).orThrow();
  }
  rig.sim().destroyStream(old).orThrow();
  const Stream young = rig.stream();
  REQUIRE(young == old);
  rig.sim().faults().failNth(Call::kRecordEvent, 1);
  CHECK_THROWS_AS(rig.allocator.forgetStream(young), DeviceFailure);
  const auto host = [&] { return rig.allocator.memoryStats().host_bytes; };
  const std::uint64_t before = host();
  for (int i = 0; i < 100; ++i) rig.allocator.free(rig.allocator.allocate(kKiB, young));
  CHECK(host() <= before + 16 * kKiB);
  rig.allocator.free(held);
}

}  // namespace cistern::test
