// virtualSegments: segments of one page each, and what becomes of them when the device refuses.
#include <memory>

#include "cistern/segment_source.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

constexpr Call kMakes[] = {Call::kCreatePage, Call::kReserve, Call::kMap, Call::kSetAccess};
constexpr Call kUndoes[] = {Call::kUnmap, Call::kFreeReservation, Call::kReleasePage};

struct VirtualRig {
  VirtualRig() : device(sim::makeDevice(simOf(kGiB))), source(virtualSegments(*device)) {}
  ~VirtualRig() {
    source.reset();
    CHECK(takenOf(*device) == 0);
    CHECK(calls(Call::kReserve) - failed(Call::kReserve) ==
          calls(Call::kFreeReservation) - failed(Call::kFreeReservation));
    CHECK(device->races().empty());
  }
  std::uint64_t calls(Call call) { return countOf(*device, call); }
  std::uint64_t failed(Call call) { return device->faults().hits(call); }
  Result<Address> allocate(std::size_t bytes) { return source->allocate(bytes, {}); }

  std::unique_ptr<sim::SimulatedDevice> device;
  std::shared_ptr<SegmentSource> source;
};

}  // namespace

TEST_CASE("each segment of virtualSegments is one page of the device, at its own addresses",
          "[engine][part]") {
  VirtualRig rig;
  const Address first = rig.allocate(20 * kMiB).orThrow(),
                second = rig.allocate(2 * kMiB).orThrow();
  for (const Call call : kMakes) CHECK(rig.calls(call) == 2);
  CHECK(takenOf(*rig.device) == 22 * kMiB);
  CHECK(rig.source->pageOf(first));
  CHECK(rig.source->pageOf(second));
  CHECK(*rig.source->pageOf(first) != *rig.source->pageOf(second));
  CHECK(!rig.source->pageOf(first + 2 * kMiB));
  CHECK(rig.source->free(first, 20 * kMiB));
  CHECK(!rig.source->pageOf(first));
  CHECK(rig.source->free(second, 2 * kMiB));
  for (const Call call : kUndoes) CHECK(rig.calls(call) == 2);
}

TEST_CASE("a segment that the device does not make is no segment at all", "[engine][part]") {
  for (const Call refused : kMakes) {
    VirtualRig rig;
    rig.device->faults().failNth(refused, 1);
    const Result<Address> made = rig.allocate(20 * kMiB);
    REQUIRE(!made);
    CHECK(made.error().call == refused);
    CHECK(made.error().kind == ErrorKind::kOutOfMemory);
    CHECK(takenOf(*rig.device) == 0);
    CHECK(rig.source->free(rig.allocate(20 * kMiB).orThrow(), 20 * kMiB));
  }
}

TEST_CASE("what the device does not take back at once goes at a later call", "[engine][part]") {
  for (const Call refused : kUndoes) {
    for (const bool made : {true, false}) {
      CAPTURE(int(refused), made);
      VirtualRig rig;
      const Address first = made ? rig.allocate(20 * kMiB).orThrow() : 0;
      rig.device->faults().failAll(refused);
      // Mapped pages stay the pool's: it asks again.
      const bool stays = made && refused == Call::kUnmap;
      if (made) CHECK(rig.source->free(first, 20 * kMiB).ok() != stays);
      if (!made) {
        rig.device->faults().failNth(Call::kSetAccess, 1);
        CHECK(!rig.allocate(20 * kMiB));
      }
      rig.device->faults().clear();
      if (stays) {
        CHECK(rig.source->pageOf(first));
        CHECK(rig.source->free(first, 20 * kMiB));
      }
      const Address second = rig.allocate(2 * kMiB).orThrow();
      CHECK(takenOf(*rig.device) == 2 * kMiB);
      CHECK(rig.source->free(second, 2 * kMiB));
    }
  }
}

TEST_CASE("a failed undoing is repeated until the device does it, at the source's end too",
          "[engine][part]") {
  VirtualRig rig;
  rig.device->faults().failNth(Call::kMap, 1);
  rig.device->faults().failNth(Call::kReleasePage, 1);
  CHECK(!rig.allocate(20 * kMiB));
  CHECK(takenOf(*rig.device) == 20 * kMiB);
}

TEST_CASE("a segment of virtualSegments waits for queued work before it goes", "[engine][part]") {
  VirtualRig rig;
  const Stream stream = rig.device->createStream().orThrow();
  const Address segment = rig.allocate(2 * kMiB).orThrow();
  const sim::Access all{segment, 2 * kMiB, sim::AccessKind::kWrite};
  rig.device->launch(stream, {"fill", {all}, 1'000'000, nullptr}).orThrow();
  const Stream captured = rig.device->createStream().orThrow();
  rig.device->beginCapture(captured, CaptureMode::kRelaxed).orThrow();
  {
    const RelaxedCaptureMode relaxed(*rig.device);
    CHECK(!rig.source->free(segment, 2 * kMiB));
  }
  CHECK(rig.source->pageOf(segment));
  rig.device->destroyGraph(rig.device->endCapture(captured).orThrow()).orThrow();
  CHECK(rig.source->free(segment, 2 * kMiB));
}

TEST_CASE("there are no virtualSegments without virtual memory", "[engine][part]") {
  sim::SimConfig config = simOf(kGiB);
  config.virtual_memory = false;
  CHECK(virtualSegments(*sim::makeDevice(config)) == nullptr);
}

}  // namespace cistern::test
