// Many pages of the host are made without the lock that other misses need, because that takes long.
#include <memory>

#include "allocator/engine/engine.hpp"
#include "tests/pools/overflow_support.hpp"
#include "tests/support/meanwhile.hpp"

namespace cistern::test {
namespace {

constexpr std::uint64_t kDevice = 64 * kMiB, kHost = 2 * kGiB;
constexpr std::size_t kMany = 512 * kMiB;

/// A small device, and a host with room: for a pool that lies there, and for overflow.
struct ManyHostPages {
  ManyHostPages() { allocator.setOverflow(kGiB); }
  ~ManyHostPages() {
    device.before = nullptr;
    allocator.emptyCache();
    allocator.audit();
    CHECK(sim->hostPageBytesLeft() == kHost);
  }
  ManyHostPages(const ManyHostPages&) = delete;
  ManyHostPages& operator=(const ManyHostPages&) = delete;

  void* inPool(std::size_t bytes) { return pool.allocate(bytes, s); }
  void* overflowing(std::size_t bytes) { return allocator.allocate(bytes, s); }
  bool isFree(Mutex& mutex) CISTERN_NO_TSA {
    const bool free = mutex.try_lock();
    if (free) mutex.unlock();
    return free;
  }

  std::unique_ptr<sim::SimulatedDevice> sim = sim::makeDevice(test::overflowing(kDevice, kHost));
  InterposedDevice device{*sim};
  CachingAllocator allocator{device, Options::parse("background_thread:false")};
  Pools pools{allocator};
  MemPool pool{pools, {nullptr, true, false, false, Location::kHost}};
  const Stream s = sim->createStream().orThrow(), other = sim->createStream().orThrow();
};

using Request = void* (ManyHostPages::*)(std::size_t);
Request anyRequest() { return GENERATE(&ManyHostPages::inPool, &ManyHostPages::overflowing); }

}  // namespace

TEST_CASE("no lock is held while many pages of the host are made", "[pools][overflow][pages]") {
  ManyHostPages rig;
  const Request request = anyRequest();
  std::uint64_t made = 0, held = 0;
  rig.device.before = [&](Call call) {
    if (call != Call::kCreateHostPage) return;
    ++made;
    held += rig.isFree(rig.allocator.engine().pages.mutex()) ? 0 : 1;
  };
  void* const block = (rig.*request)(kMany);
  CHECK(made >= 8);
  CHECK(held <= 1);  // the device had somewhat less than it said, or more
  rig.allocator.free(block);
}

TEST_CASE("a device that another process fills below the limit does not make host pages wait",
          "[pools][overflow][pages]") {
  ManyHostPages rig;
  const Page theirs = rig.sim->createPage(kDevice - 4 * kMiB).orThrow();
  int made = 0, held = 0;
  rig.device.before = [&](Call call) {
    if (call != Call::kCreateHostPage) return;
    ++made;
    held += rig.isFree(rig.allocator.engine().pages.mutex()) ? 0 : 1;
  };
  void* const block = rig.overflowing(kDevice + 64 * kMiB - 2 * kMiB);
  CHECK(made >= 2);
  CHECK(held == 0);
  rig.allocator.free(block);
  rig.sim->releasePage(theirs).orThrow();
}

TEST_CASE("pages of the host that a refused request has made go back", "[pools][overflow][pages]") {
  ManyHostPages rig;
  const Request request = anyRequest();
  int made = 0;
  rig.device.before = [&](Call call) {
    if (call == Call::kCreateHostPage && ++made == 5)
      rig.sim->faults().failAll(call, ErrorKind::kOutOfMemory);
  };
  bool refused = false;
  try {
    rig.allocator.free((rig.*request)(kMany));
  } catch (const OutOfMemory&) {
    refused = true;
  }
  rig.sim->faults().clear();
  CHECK(refused);
  CHECK(rig.sim->hostPageBytesLeft() == kHost);
  CHECK(rig.allocator.overflow().reserved == 0);
}

TEST_CASE("another thread is served while many pages of the host are made",
          "[pools][overflow][pages]") {
  ManyHostPages rig;
  const Request request = anyRequest();
  void *small = nullptr, *large = nullptr;
  Meanwhile meanwhile(rig.device, Call::kCreateHostPage, [&] {
    small = rig.allocator.allocate(4 * kMiB, rig.other);
    large = (rig.*request)(kMany / 2);  // of the same heap
  });
  void* const block = (rig.*request)(kMany);
  CHECK(meanwhile.wait());
  rig.allocator.audit();
  for (void* each : {block, small, large}) rig.allocator.free(each);
}

}  // namespace cistern::test
