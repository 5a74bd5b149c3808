// The memory that cuDSS takes through the functions that its handle was given.
#include <thread>

#include "allocator/engine/engine.hpp"
#include "allocator/reports/accounting.hpp"
#include "cistern/handles/cudss.hpp"
#include "cistern/handles/library.hpp"
#include "handles/memory_source.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/handles/bound/fake_vendor.hpp"
#include "tests/handles/cudss/fake_memory.hpp"

namespace cistern::test {
namespace {

struct Rig : SimRig {
  explicit Rig(sim::SimConfig config = simOf(kGiB)) : SimRig("", std::move(config)) {
    setWorkspaceAllocator(sim().ordinal(), &allocator);
  }
  ~Rig() { setWorkspaceAllocator(sim().ordinal(), nullptr); }
  std::int64_t allocated() const { return nowOf(allocator, Stat::kAllocatedBytes); }
};

/// What the library does with the functions, on the handle of this thread.
struct Memory {
  const cudssDeviceMemHandler_t handler = FakeMemory::handlers().at(getCurrentCudssHandle());

  int take(void** memory, std::size_t bytes, Stream stream = {}) const {
    return handler.device_alloc(handler.ctx, memory, bytes, native(stream));
  }
  int give(void* memory, std::size_t bytes, Stream stream = {}) const {
    return handler.device_free(handler.ctx, memory, bytes, native(stream));
  }
  static cudaStream_t native(Stream stream) { return reinterpret_cast<cudaStream_t>(stream.raw); }
};

}  // namespace

TEST_CASE("cuDSS's memory is the allocator's, on the stream that it names", "[bound]") {
  Rig rig;
  const Stream stream = rig.stream();
  const Memory memory;
  void* piece = nullptr;
  REQUIRE(memory.take(&piece, 3 * kMiB, stream) == 0);
  const auto live = liveBlocks(rig.allocator.engine().default_pool);
  REQUIRE(live.size() == 1);
  CHECK(live[0].address == toAddress(piece));
  CHECK(live[0].stream == stream);
  CHECK(live[0].requested == 3 * kMiB);
  CHECK(memory.give(piece, 3 * kMiB, stream) == 0);
  CHECK(rig.allocated() == 0);
  CHECK(rig.allocator.allocate(3 * kMiB, stream) == piece);  // at once, in stream order
}

TEST_CASE("what cuDSS gives back on another stream waits for that one", "[bound]") {
  Rig rig;
  const Stream owner = rig.stream(), last = rig.stream();
  const Memory memory;
  void* piece = nullptr;
  REQUIRE(memory.take(&piece, 3 * kMiB, owner) == 0);
  rig.work.delay(last, kLongNs);
  rig.touch(last, piece);
  CHECK(memory.give(piece, 3 * kMiB, last) == 0);
  CHECK(rig.allocated() == 0);
  void* const next = rig.allocator.allocate(3 * kMiB, owner);
  CHECK(next != piece);
  rig.touch(owner, next);
}

TEST_CASE("what cuDSS gives back on a stream that is gone waits for the device", "[bound]") {
  Rig rig;
  const Stream owner = rig.stream(), gone = rig.stream();
  const Memory memory;
  void* piece = nullptr;
  REQUIRE(memory.take(&piece, 3 * kMiB, owner) == 0);
  rig.sim().destroyStream(gone).orThrow();
  const std::uint64_t waits = countOf(rig.sim(), Call::kSynchronizeDevice);
  CHECK(memory.give(piece, 3 * kMiB, gone) == 0);
  CHECK(countOf(rig.sim(), Call::kSynchronizeDevice) == waits + 1);
  CHECK(rig.allocated() == 0);
}

TEST_CASE("a device's handle takes of that device's allocator, whatever is current", "[bound]") {
  sim::SimConfig config = simOf(kGiB);
  config.ordinal = 1;
  Rig here, there(config);
  const auto memory = [] {
    const DeviceGuard guard(1);
    return Memory();
  }();
  void* piece = nullptr;
  REQUIRE(memory.take(&piece, kMiB) == 0);
  CHECK(here.allocated() == 0);
  CHECK(there.allocated() == std::int64_t(kMiB));
  CHECK(memory.give(piece, kMiB) == 0);
}

TEST_CASE("when memory is out cuDSS is told, and nothing is thrown through it", "[bound]") {
  Rig rig(simOf(8 * kMiB));
  const Memory memory;
  void* piece = nullptr;
  CHECK(memory.take(&piece, kGiB) != 0);
  CHECK(memory.take(&piece, kMiB) == 0);
  CHECK(memory.give(piece, kMiB) == 0);
}

TEST_CASE("without an allocator cuDSS's memory is the driver's, and each takes back what it gave",
          "[bound]") {
  const Memory memory;
  int one = 0;
  FakeMemory::of_the_driver = &one;
  FakeMemory::given_to_driver.clear();
  void *of_driver = nullptr, *of_allocator = nullptr;
  REQUIRE(memory.take(&of_driver, kMiB) == 0);
  CHECK(of_driver == &one);
  {
    Rig rig;
    REQUIRE(memory.take(&of_allocator, kMiB) == 0);
    CHECK(memory.give(of_driver, kMiB) == 0);
    CHECK(FakeMemory::given_to_driver == std::vector<void*>{&one});
    CHECK(rig.allocated() == std::int64_t(kMiB));
  }
  CHECK(memory.give(of_allocator, kMiB) == 0);  // too late: it went with its allocator
  CHECK(FakeMemory::given_to_driver.size() == 1);
  CHECK(memory.give(nullptr, 0) == 0);
}

TEST_CASE("the driver's memory at the address of a piece that went is the driver's", "[bound]") {
  const Memory memory;
  void* piece = nullptr;
  {
    Rig rig;
    REQUIRE(memory.take(&piece, kMiB) == 0);
  }
  FakeMemory::of_the_driver = piece;
  FakeMemory::given_to_driver.clear();
  void* again = nullptr;
  REQUIRE(memory.take(&again, kMiB) == 0);
  CHECK(memory.give(again, kMiB) == 0);
  CHECK(FakeMemory::given_to_driver == std::vector<void*>{piece});
}

TEST_CASE("a driver's refusal reaches cuDSS, and is not left behind for the program", "[bound]") {
  const Memory memory;
  FakeMemory::of_the_driver = nullptr;
  const int cleared = FakeMemory::errors_cleared;
  void* piece = nullptr;
  CHECK(memory.take(&piece, kMiB) == int(cudaErrorMemoryAllocation));
  CHECK(FakeMemory::errors_cleared == cleared + 1);
}

TEST_CASE("a handle that does not take the functions is destroyed again", "[bound]") {
  std::thread([] {
    const DeviceGuard guard(3);
    FakeMemory::refuse_handler = true;
    const std::size_t destroyed = FakeLibraries::destroyed.size();
    CHECK_THROWS_AS(getCurrentCudssHandle(), LibraryError);
    CHECK(FakeLibraries::destroyed.size() == destroyed + 1);
    FakeMemory::refuse_handler = false;
    CHECK(getCurrentCudssHandle() != nullptr);
  }).join();
}

}  // namespace cistern::test
