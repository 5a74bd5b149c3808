// Memory that the program holds where it is: CachingAllocator::hold, Pools::hold.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/pools/sleep_support.hpp"
#include "tests/support/forwarding_device.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kPage = 2 * kMiB;

/// A device that knows which page lies behind each address.
class KnowingDevice final : public ForwardingDevice<KnowingDevice> {
 public:
  using ForwardingDevice::ForwardingDevice;

  /// The page, and its part, behind each unit of the range; {0, 0} where there is none.
  using Behind = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  Behind behind(const void* from, std::size_t bytes) const {
    Behind found;
    for (Address at = toAddress(from) & ~(kPage - 1); at < toAddress(from) + bytes; at += kPage) {
      const auto mapped = pages_.find(at);
      found.push_back(mapped == pages_.end() ? std::pair<std::uint64_t, std::uint64_t>()
                                             : mapped->second);
    }
    return found;
  }

 private:
  Status doMap(Address address, std::size_t bytes, Page page) override {
    for (std::size_t at = 0; at < bytes; at += kPage) pages_[address + at] = {page.raw, at};
    return behind_.map(address, bytes, page);
  }
  Status doUnmap(Address address, std::size_t bytes) override {
    for (std::size_t at = 0; at < bytes; at += kPage) pages_.erase(address + at);
    return behind_.unmap(address, bytes);
  }

  std::map<Address, std::pair<std::uint64_t, std::uint64_t>> pages_;
};

struct HoldRig {
  explicit HoldRig(std::string_view conf) : allocator(device, optionsOf(conf)) {}
  void finish() { sim->synchronizeDevice().orThrow(); }
  bool refuses(std::size_t bytes) {
    return !refusalOf<OutOfMemory>([&] { allocator.free(allocator.allocate(bytes, t)); }).empty();
  }

  const std::unique_ptr<sim::SimulatedDevice> sim = sim::makeDevice(simOf(kGiB));
  KnowingDevice device{*sim};
  CachingAllocator allocator;
  Stream s = sim->createStream().orThrow(), t = sim->createStream().orThrow();
};

}  // namespace

TEST_CASE("held memory keeps its pages through frees, moves and pressure", "[pools][pages]") {
  HoldRig rig("backing:pages");
  void* const block = rig.allocator.allocate(40 * kMiB, rig.s);
  std::shared_ptr<void> held = rig.allocator.hold(block, 40 * kMiB);
  CHECK(rig.allocator.memoryStats().held_bytes >= 40 * kMiB);
  const auto before = rig.device.behind(block, 40 * kMiB);
  rig.allocator.free(block);
  rig.finish();
  rig.allocator.emptyCache();
  CHECK(rig.device.behind(block, 40 * kMiB) == before);
  void* const large = rig.allocator.allocate(900 * kMiB, rig.t);  // all but what is held
  CHECK(rig.device.behind(block, 40 * kMiB) == before);
  CHECK(rig.refuses(100 * kMiB));
  void* const again = rig.allocator.allocate(40 * kMiB, rig.s);  // in the held memory
  CHECK(again == block);
  rig.allocator.free(again);
  rig.allocator.free(large);
  rig.finish();
  held.reset();
  CHECK(rig.allocator.memoryStats().held_bytes == 0);
  rig.allocator.emptyCache();
  CHECK(takenOf(*rig.sim) == 0);
  CHECK_FALSE(rig.refuses(1000 * kMiB));
}

// A client that registers its buffers by address, and keeps the last four registrations, as caches
// of UCX and NCCL do. Between its buffers other streams take what memory there is.
TEST_CASE("a registration by address stays true while its memory is held", "[pools][pages]") {
  for (const bool holds : {true, false}) {
    HoldRig rig("backing:pages,limit:300MiB,background_thread:false");
    std::mt19937 random(70);
    struct Registration {
      void* pointer;
      std::size_t bytes;
      KnowingDevice::Behind pages;
      std::shared_ptr<void> held;
    };
    std::deque<Registration> cache;
    std::uint64_t stale = 0, found = 0;
    for (int round = 0; round < 400; ++round) {
      const std::size_t bytes = (1 + random() % 8) * kPage;
      void* const buffer = rig.allocator.allocate(bytes, rig.s);
      const auto known = std::ranges::find_if(cache, [&](const Registration& one) {
        return one.pointer == buffer && one.bytes >= bytes;
      });
      if (known != cache.end()) {
        ++found;
        stale += rig.device.behind(buffer, known->bytes) != known->pages;
      } else {
        if (cache.size() == 4) cache.pop_front();
        cache.push_back({buffer, bytes, rig.device.behind(buffer, bytes),
                         holds ? rig.allocator.hold(buffer, bytes) : nullptr});
      }
      void* const plain = rig.allocator.allocate((10 + random() % 90) * kMiB, rig.s);
      rig.allocator.free(buffer);
      rig.allocator.free(plain);
      rig.allocator.free(rig.allocator.allocate((200 + random() % 36) * kMiB, rig.t));
      rig.allocator.audit();
    }
    INFO("holds: " << holds << ", found: " << found << ", stale: " << stale);
    CHECK(found > 10);
    CHECK((stale > 0) == !holds);
    cache.clear();
    rig.finish();
    rig.allocator.emptyCache();
    CHECK(takenOf(*rig.sim) == 0);
  }
}

TEST_CASE("a held pool keeps all of its memory, also what comes later", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), t = rig.stream();
  MemPool pool(rig.pools);
  rig.free(pool.allocate(20 * kMiB, s));
  std::shared_ptr<void> held = rig.pools.hold(pool.id());
  rig.free(pool.allocate(60 * kMiB, s));
  rig.finish();
  const std::int64_t reserved = rig.reservedBy(pool.id());
  rig.pools.emptyCache(pool.id());
  rig.allocator.emptyCache();
  rig.pools.setUseOnOOM(pool.id(), true);
  CHECK(rig.outOfMemory(990 * kMiB, t));
  CHECK(rig.reservedBy(pool.id()) == reserved);
  CHECK(rig.pools.getPoolUseCount(pool.id()) == 2);
  held.reset();
  CHECK(rig.pools.getPoolUseCount(pool.id()) == 1);
  rig.temporary(990 * kMiB, t);
  CHECK(rig.reservedBy(pool.id()) == 0);
}

TEST_CASE("a hold outlives the pool's last user", "[pools]") {
  PoolRig rig;
  rig.pools.createOrIncrefPool({0, 77});
  void* const block = rig.pools.allocate(5 * kMiB, Stream{}, {0, 77});
  std::shared_ptr<void> held = rig.pools.hold({0, 77});
  rig.pools.releasePool({0, 77});
  rig.free(block);
  rig.allocator.emptyCache();
  CHECK(rig.reservedBy({0, 77}) > 0);
  held.reset();
  rig.allocator.emptyCache();
  CHECK_FALSE(rig.known({0, 77}));
}

TEST_CASE("held memory stays when its pool sleeps", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const block = rig.filled(6 * kMiB, 3);
  void* const other = rig.filled(30 * kMiB, 4);
  const std::shared_ptr<void> held = rig.allocator.hold(block, 6 * kMiB);
  const SleepReport report = rig.pools.sleep({rig.id()});
  CHECK(report.stayed >= 6 * kMiB);
  CHECK(report.released >= 20 * kMiB);
  for (const StayedMemory& stayed : report.why) CHECK(stayed.why == WhyStayed::kHeld);
  CHECK(report.text().find("held") != std::string::npos);
  CHECK_THROWS_AS(rig.allocator.hold(other, 30 * kMiB), PoolError);
  (void)rig.pools.wake({rig.id()});
  CHECK(rig.wrong(block, 6 * kMiB, 3) == 0);
  CHECK(rig.wrong(other, 30 * kMiB, 4) == 0);
  rig.free(block);
  rig.free(other);
}

TEST_CASE("a pool that sleeps refuses a request as ever, also at its limit",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const block = rig.filled(6 * kMiB, 3);
  rig.pools.setLimit(rig.id(), 8 * kMiB);
  (void)rig.pools.sleep({rig.id()});
  CHECK_THROWS_AS(rig.pool.allocate(4 * kMiB, rig.s), PoolError);
  (void)rig.pools.wake({rig.id()});
  rig.free(block);
}

TEST_CASE("a range without memory is not held, and the refusal names the gap", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  void* const block = rig.written(4 * kMiB, s);
  const auto refusal = [&](const void* at, std::size_t bytes) {
    return refusalOf<InvalidArgument>([&] { (void)rig.allocator.hold(at, bytes); });
  };
  CHECK(refusal(block, 0).find("0 bytes") != std::string::npos);
  CHECK(refusal(block, std::size_t{1} << 50).find("none lies at") != std::string::npos);
  CHECK(refusal(block, SIZE_MAX).find("none lies at") != std::string::npos);
  CHECK(refusal(&rig, 8).find("none lies at") != std::string::npos);
  CHECK_FALSE(refusal(nullptr, 8).empty());
  CHECK(rig.allocator.memoryStats().held_bytes == 0);
  const std::shared_ptr<void> all = rig.allocator.hold(block, 4 * kMiB);
  const std::uint64_t held_bytes = rig.allocator.memoryStats().held_bytes;
  CHECK(held_bytes >= 4 * kMiB);
  const std::shared_ptr<void> twice = rig.allocator.hold(block, 1);
  CHECK(rig.allocator.memoryStats().held_bytes == held_bytes);
  CHECK_THROWS_AS(rig.pools.hold({}), PoolError);
  CHECK_THROWS_AS(rig.pools.hold({0, 12345}), PoolError);
  rig.free(block);
}

}  // namespace cistern::test
