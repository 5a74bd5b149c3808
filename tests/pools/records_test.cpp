// What keeps a pool, and pools, from going: a segment that is on its way to the device, and threads
// that let go of memory for them.
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

/// A source over the device's malloc that calls `before_free`, which may refuse, first.
class HookedSource final : public SegmentSource {
 public:
  explicit HookedSource(Device& device) : device_(device) {}
  Result<Address> allocate(std::size_t bytes, Stream) override {
    ++out;
    return device_.malloc(bytes);
  }
  Status free(Address address, std::size_t) override {
    if (before_free && !before_free()) {
      return DeviceError{Call::kFree, ErrorKind::kOther, 1, "", "not now"};
    }
    --out;
    return device_.free(address);
  }
  int out = 0;
  std::function<bool()> before_free;

 private:
  Device& device_;
};

}  // namespace

TEST_CASE("a pool is not gone while its source has a segment to take back", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  const auto source = std::make_shared<HookedSource>(rig.sim());
  const MempoolId_t id = graphPoolHandle(true), other = graphPoolHandle(true);
  rig.pools.createOrIncrefPool(id, {source, false});
  rig.free(rig.pools.allocate(30 * kMiB, s, id));
  rig.pools.releasePool(id);
  // Meanwhile another thread makes a pool, and lets go of those that hold nothing.
  source->before_free = [&] {
    std::thread([&] { rig.pools.createOrIncrefPool(other); }).join();
    return false;
  };
  rig.allocator.emptyCache();
  CHECK(rig.known(id));
  CHECK(rig.reservedBy(id) >= mib(30));
  CHECK(source->out == 1);
  source->before_free = nullptr;
  rig.allocator.emptyCache();
  CHECK(source->out == 0);
  rig.allocator.emptyCache();  // which begins with letting go of pools
  CHECK(!rig.known(id));
  CHECK(reservedOf(rig.allocator) == 0);
  rig.pools.releasePool(other);
}

// It is in there for as long as this observer likes.
TEST_CASE("pools go when no thread lets go of memory for them any more", "[pools][threads]") {
  SimRig rig("", simOf(64 * kMiB));
  const Stream s = rig.stream(), t = rig.stream();
  std::optional<Pools> pools(std::in_place, rig.allocator);
  {
    Graph graph(*pools);
    GraphCapture capture(graph, s);
    rig.allocator.free(rig.allocator.allocate(kMiB, s));
    capture.end();
    rig.sim().launch(s, {"long", {}, kLongNs, nullptr}).orThrow();
    graph.replay(s);
  }
  rig.sim().synchronizeDevice().orThrow();
  std::atomic<bool> inside{false}, going{false}, gone{false}, gone_meanwhile{false};
  rig.allocator.attachPoolReleasedObserver([&](MempoolId_t) {
    inside = true;
    inside.notify_all();
    going.wait(false);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
    while (std::chrono::steady_clock::now() < until && !gone) std::this_thread::yield();
    gone_meanwhile = gone.load();
  });
  std::thread other([&] { rig.allocator.free(rig.allocator.allocate(3 * kMiB, t)); });
  inside.wait(false);
  going = true;
  going.notify_all();
  pools.reset();
  gone = true;
  other.join();
  CHECK(!gone_meanwhile);
}

}  // namespace cistern::test
