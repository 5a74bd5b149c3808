// Regions of PyTorch's pools, and what is left of those whose capture has failed: PyTorch does not
// end them.
#include <memory>
#include <thread>

#include "interop/torch/torch_pools.hpp"
#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

using cistern_torch::TorchPoolId;
using cistern_torch::TorchPools;

constexpr TorchPoolId kShared{0, 1}, kSecond{0, 2}, kOwn{1, 0};

CUstream_st* torchStream(Stream stream) { return reinterpret_cast<CUstream_st*>(stream.raw); }

/// What PyTorch's graph does, in its order.
struct TorchRig : PoolRig {
  void begin(TorchPoolId id, Stream stream, bool told = true) {
    graph = std::make_shared<std::uint64_t>(0);
    const auto catches = [this, of = std::weak_ptr(graph)](CUstream_st* asked) {
      const CaptureInfo info = sim().captureInfo(asked).orThrow();
      if (info.status != CaptureStatus::kActive) return false;
      asked_the_dead += of.expired();
      return !of.expired() && info.id == *of.lock();
    };
    using On = std::optional<CUstream_st*>;
    torch.begin(id, catches, told ? On(torchStream(stream)) : On());
    sim().beginCapture(stream, CaptureMode::kGlobal).orThrow();
    *graph = sim().captureInfo(stream).orThrow().id;
  }
  void* request(std::size_t bytes, Stream stream) {
    torch.expect(torchStream(stream));
    return written(bytes, stream);
  }
  void endOnDevice(Stream stream) {
    made = sim().endCapture(stream).orThrow();
    sim().destroyGraph(made).orThrow();
  }
  void end(TorchPoolId id, Stream stream) {
    endOnDevice(stream);
    torch.end(id);
  }
  /// capture_end throws before it has told anyone, and the graph goes.
  void fail(Stream stream) {
    endOnDevice(stream);
    graph = nullptr;
  }
  /// Of a graph that computes nothing lasting; Cistern's name for it.
  MempoolId_t capture(TorchPoolId id, Stream stream, bool told = true) {
    begin(id, stream, told);
    free(request(4 * kMiB, stream));
    const MempoolId_t name = allocator.poolFor(stream);
    end(id, stream);
    return name;
  }
  MempoolId_t failedCapture(TorchPoolId id, Stream stream, bool told = true) {
    begin(id, stream, told);
    free(request(4 * kMiB, stream));
    const MempoolId_t name = allocator.poolFor(stream);
    fail(stream);
    return name;
  }
  void emptyCache() { torch.emptyCache({0, 0}); }
  std::int64_t reserved() { return allocator.memoryStats()[Stat::kReservedBytes].current; }

  TorchPools torch{pools};
  std::shared_ptr<std::uint64_t> graph;  ///< its capture's id
  DeviceGraph made;
  int asked_the_dead = 0;
};

}  // namespace

TEST_CASE("the memory of a capture that has failed goes when its thread empties the cache",
          "[torch][pools]") {
  const bool told = GENERATE(true, false);
  TorchRig rig;
  const Stream s = rig.stream();
  const MempoolId_t pool = rig.failedCapture(kOwn, s, told);
  CHECK(pool != MempoolId_t{});
  CHECK(rig.allocator.poolFor(s) == MempoolId_t{});
  void* const eager = rig.request(kMiB, s);
  rig.emptyCache();
  CHECK(rig.torch.uses(kOwn) == 0);
  CHECK_FALSE(rig.known(pool));
  rig.free(eager);
  rig.emptyCache();
  CHECK(rig.reserved() == 0);
}

TEST_CASE("graphs that are gone give their memory back after a capture has failed",
          "[torch][pools]") {
  const bool allocates = GENERATE(true, false);
  TorchRig rig;
  const Stream s = rig.stream();
  const MempoolId_t pool = rig.capture(kShared, s);
  rig.begin(kSecond, s);
  if (allocates) rig.free(rig.request(kMiB, s));
  rig.fail(s);
  rig.torch.release(kShared);
  CHECK(rig.known(pool));
  SECTION("at the next emptyCache, by any thread") {
    std::thread([&] { rig.emptyCache(); }).join();
    CHECK_FALSE(rig.known(pool));
  }
  SECTION("before memory is short") {
    CHECK(rig.torch.settle());
    rig.pools.emptyUnowned();
    CHECK_FALSE(rig.known(pool));
  }
}

TEST_CASE("nothing asks the graph of a capture that has failed", "[torch][pools]") {
  const bool allocates = GENERATE(true, false);
  TorchRig rig;
  const Stream s = rig.stream();
  rig.begin(kShared, s);
  if (allocates) rig.free(rig.request(kMiB, s));
  rig.fail(s);
  rig.begin(kSecond, s);
  void* const block = rig.request(kMiB, s);
  CHECK(rig.torch.nameOf(rig.allocator.poolFor(s)) == kSecond);
  rig.end(kSecond, s);
  rig.free(block);
  rig.torch.release(kSecond);
  CHECK(rig.asked_the_dead == 0);
}

TEST_CASE("a pool is captured into again after a capture into it has failed", "[torch][pools]") {
  TorchRig rig;
  const Stream s = rig.stream();
  const MempoolId_t pool = rig.failedCapture(kShared, s);
  CHECK(rig.capture(kShared, s) == pool);
  CHECK(rig.torch.uses(kShared) == 1);
  CHECK_THROWS_AS(rig.torch.end(kShared), PoolError);
  rig.torch.release(kShared);
  rig.emptyCache();
  CHECK_FALSE(rig.known(pool));
}

TEST_CASE("a program may end the region of a capture that has failed", "[torch][pools]") {
  TorchRig rig;
  const Stream s = rig.stream();
  const MempoolId_t pool = rig.failedCapture(kShared, s);
  void* const eager = rig.request(kMiB, s);  // the capture is known to be over by now
  rig.torch.end(kShared);
  rig.torch.release(kShared);
  CHECK(rig.torch.uses(kShared) == 0);
  rig.emptyCache();
  CHECK_FALSE(rig.known(pool));
  rig.free(eager);
}

TEST_CASE("the last user of a pool takes its open regions along", "[torch][pools]") {
  TorchRig rig;
  const Stream s = rig.stream();
  MempoolId_t pool;
  SECTION("of a capture that has failed") { pool = rig.failedCapture(kShared, s); }
  SECTION("of a capture that goes on") {
    rig.begin(kShared, s);
    rig.free(rig.request(kMiB, s));
    pool = rig.allocator.poolFor(s);
  }
  SECTION("of no capture") {
    rig.torch.begin(kShared, [](CUstream_st*) { return true; });
    rig.free(rig.request(kMiB, s));
    pool = rig.allocator.poolFor(s);
  }
  CHECK(rig.torch.nameOf(pool) == kShared);
  rig.torch.release(kShared);
  CHECK(rig.torch.uses(kShared) == 0);
  CHECK(rig.allocator.poolFor(s) == MempoolId_t{});
  CHECK_THROWS_AS(rig.torch.end(kShared), PoolError);
  if (rig.sim().captureInfo(s).orThrow().status != CaptureStatus::kNone) rig.fail(s);
  rig.emptyCache();
  CHECK_FALSE(rig.known(pool));
}

TEST_CASE("a graph keeps its memory whatever becomes of another capture into its pool",
          "[torch][pools]") {
  const bool released = GENERATE(true, false);
  TorchRig rig;
  const Stream s = rig.stream();
  const MempoolId_t pool = rig.capture(kShared, s);
  const std::int64_t held = rig.reservedBy(pool);
  rig.failedCapture(kShared, s);
  if (released) rig.torch.release(kShared);
  for (int i = 0; i < 2; ++i) {
    rig.emptyCache();
    CHECK(rig.torch.uses(kShared) == 1);
    CHECK(rig.reservedBy(pool) >= held);
  }
  rig.torch.release(kShared);
  rig.emptyCache();
  CHECK_FALSE(rig.known(pool));
}

TEST_CASE("a capture that the device has ended is PyTorch's to end, whoever comes between",
          "[torch][pools]") {
  TorchRig rig;
  const Stream s = rig.stream();
  rig.begin(kShared, s);
  rig.free(rig.request(4 * kMiB, s));
  const MempoolId_t pool = rig.allocator.poolFor(s);
  rig.endOnDevice(s);
  std::thread([&] {
    rig.emptyCache();
    rig.free(rig.request(kMiB, rig.stream()));
  }).join();
  rig.torch.end(kShared);
  rig.emptyCache();
  CHECK(rig.torch.uses(kShared) == 1);
  CHECK(rig.reservedBy(pool) >= std::int64_t(4 * kMiB));  // replays use it
  rig.torch.release(kShared);
  rig.emptyCache();
  CHECK_FALSE(rig.known(pool));
}

TEST_CASE("the allocator of a MemPool has its memory back with that, or with its last block",
          "[torch][pools]") {
  struct Source final : SegmentSource {
    explicit Source(sim::SimDevice& of) : device(of) {}
    Result<Address> allocate(std::size_t bytes, Stream) override {
      ++has;
      return device.malloc(bytes);
    }
    Status free(Address address, std::size_t) override {
      --has;
      return device.free(address);
    }
    sim::SimDevice& device;
    int has = 0;
  };
  const bool outlives = GENERATE(true, false);
  TorchRig rig;
  const Stream s = rig.stream();
  const auto source = std::make_shared<Source>(rig.sim());
  rig.torch.count(kSecond, source);
  rig.torch.begin(
      kSecond, [](CUstream_st*) { return true; }, torchStream(s));
  CHECK(rig.torch.uses(kSecond) == 2);
  void* const block = rig.request(16 * kMiB, s);
  rig.torch.end(kSecond);
  rig.torch.release(kSecond);
  CHECK(source->has == 1);
  if (!outlives) rig.free(block);
  rig.torch.release(kSecond);
  rig.torch.emptyCache(kSecond);
  CHECK(source->has == int(outlives));
  if (outlives) rig.free(block);
  rig.emptyCache();
  CHECK(source->has == 0);
}

TEST_CASE("a region that was begun on another stream takes a capture of the program's own",
          "[torch][pools]") {
  TorchRig rig;
  const Stream s = rig.stream(), elsewhere = rig.stream();
  rig.torch.begin(
      kShared, [](CUstream_st*) { return true; }, torchStream(elsewhere));
  rig.sim().beginCapture(s, CaptureMode::kGlobal).orThrow();
  void* const block = rig.request(kMiB, s);
  CHECK(rig.torch.nameOf(rig.allocator.poolFor(s)) == kShared);
  rig.endOnDevice(s);
  rig.torch.end(kShared);
  rig.free(block);
  rig.torch.release(kShared);
  rig.emptyCache();
  CHECK(rig.reserved() == 0);
}

TEST_CASE("what each pool reserves is counted, also after it is gone", "[torch]") {
  TorchRig rig;
  rig.torch.countReserved();
  const auto of = [&](TorchPoolId id) {
    const auto all = rig.torch.reserved();
    const auto found = all.find(id);
    return found == all.end() ? StatValue{-1, 0, 0, 0} : found->second;
  };
  const Stream stream = rig.stream();
  rig.torch.begin(kOwn, [](CUstream_st*) { return true; });
  void* const block = rig.request(8 * kMiB, stream);
  rig.torch.end(kOwn);
  CHECK(of(kShared).current == -1);
  const std::int64_t most = of(kOwn).current;
  CHECK(most >= std::int64_t(8 * kMiB));
  CHECK((of(kOwn).peak == most && of(kOwn).allocated == most && of(kOwn).freed == 0));

  rig.free(block);
  rig.torch.release(kOwn);
  rig.torch.emptyCache({0, 0});
  CHECK((of(kOwn).current == 0 && of(kOwn).peak == most && of(kOwn).freed == most));
  rig.torch.resetReservedTotals();
  CHECK((of(kOwn).allocated == 0 && of(kOwn).freed == 0 && of(kOwn).peak == most));
  rig.torch.resetReservedPeaks();
  CHECK(of(kOwn).current == -1);
}

}  // namespace cistern::test
