// Pools whose segments come from an allocator of the program's own.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

/// The device's malloc, counted; refuses beyond `most` bytes.
class CountedSource final : public SegmentSource {
 public:
  explicit CountedSource(Device& device, std::size_t most = kGiB) : device_(device), most_(most) {}
  Result<Address> allocate(std::size_t bytes, Stream) override {
    if (throws) throw std::runtime_error("the source's own");
    if (wrong) return *wrong;
    if (out() + bytes > most_) {
      return DeviceError{Call::kMalloc, ErrorKind::kOutOfMemory, 2, "", "no more"};
    }
    const Result<Address> base = device_.malloc(bytes);
    if (base) segments_[base.value()] = bytes;
    return base;
  }
  Status free(Address address, std::size_t bytes) override {
    if (throws) throw std::runtime_error("the source's own");
    if (wrong) {
      took_back.push_back(address);
      return {};
    }
    if (refuse && refuse()) return DeviceError{Call::kFree, ErrorKind::kOther, 1, "", "not now"};
    CHECK(segments_.at(address) == bytes);
    segments_.erase(address);
    return device_.free(address);
  }
  bool covers(const void* block) const {
    const auto it = segments_.upper_bound(toAddress(block));
    if (it == segments_.begin()) return false;
    return toAddress(block) < std::prev(it)->first + std::prev(it)->second;
  }
  std::size_t count() const { return segments_.size(); }
  std::size_t out() const {
    std::size_t bytes = 0;
    for (const auto& segment : segments_) bytes += segment.second;
    return bytes;
  }
  bool throws = false;
  std::optional<Address> wrong;    ///< returned whatever is asked
  std::vector<Address> took_back;  ///< of what was wrong
  std::function<bool()> refuse;    ///< whether it does not take the next segment back

 private:
  Device& device_;
  const std::size_t most_;
  std::map<Address, std::size_t> segments_;
};

}  // namespace

TEST_CASE("a pool's own source supplies its segments, and no other's", "[pools]") {
  PoolRig rig;
  const auto source = std::make_shared<CountedSource>(rig.sim());
  MemPool pool(rig.pools, {source}), plain(rig.pools);
  const Stream s = rig.stream();
  std::vector<void*> blocks;
  {
    const MemPoolScope scope(pool);
    for (std::size_t bytes : {kKiB, 3 * kMiB, 30 * kMiB}) blocks.push_back(rig.written(bytes, s));
  }
  for (const void* block : blocks) CHECK(source->covers(block));
  void* other = plain.allocate(30 * kMiB, s);
  void* from_default = rig.allocate(30 * kMiB, s);
  CHECK(!source->covers(other));
  CHECK(!source->covers(from_default));
  CHECK(std::int64_t(source->out()) == rig.reservedBy(pool.id()));
  for (void* block : blocks) rig.free(block);
  rig.free(other);
  rig.free(from_default);
  rig.allocator.emptyCache();
  CHECK(source->count() == 0);
}

TEST_CASE("what a source throws leaves the verb, which changed nothing", "[pools]") {
  PoolRig rig("limit:64M");
  const auto source = std::make_shared<CountedSource>(rig.sim());
  MemPool pool(rig.pools, {source});
  const Stream s = rig.stream();
  source->throws = true;
  for (int i = 0; i < 5; ++i) CHECK_THROWS_WITH(pool.allocate(30 * kMiB, s), "the source's own");
  source->throws = false;
  rig.free(pool.allocate(60 * kMiB, s));  // all of the limit is there
  source->throws = true;
  rig.allocator.emptyCache();  // keeps what the source does not take back
  CHECK(source->count() == 1);
  CHECK(rig.reservedBy(pool.id()) == std::int64_t(source->out()));
  source->throws = false;
  rig.allocator.emptyCache();
  CHECK(source->count() == 0);
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("what a source may not return is a PoolError, and the pool goes on", "[pools]") {
  PoolRig rig;
  const auto source = std::make_shared<CountedSource>(rig.sim());
  MemPool pool(rig.pools, {source});
  const Stream s = rig.stream();
  void* const block = pool.allocate(30 * kMiB, s);
  void* const others = rig.allocate(30 * kMiB, s);
  for (const Address wrong : {Address{0}, Address{513}, ~Address{0}, Address{1} << 57,
                              toAddress(block), toAddress(others)}) {
    source->wrong = wrong;
    CHECK(refusedFor(pool.id(), "SegmentSource", [&] { (void)pool.allocate(30 * kMiB, s); }));
    source->wrong.reset();
    CHECK(rig.holds(pool.id(), {block}));
    CHECK(rig.reservedBy(pool.id()) == std::int64_t(source->out()));
    rig.allocator.audit();
  }
  CHECK(source->took_back == std::vector<Address>{513, ~Address{0}, Address{1} << 57});
  rig.touch(s, block);
  for (void* each : {block, others, pool.allocate(30 * kMiB, s)}) rig.free(each);
}

TEST_CASE("a pool is not closed while its last segment is on its way back", "[pools]") {
  PoolRig rig;
  const auto source = std::make_shared<CountedSource>(rig.sim());
  const MempoolId_t id{0, 1'000'000'001};
  rig.pools.createOrIncrefPool(id, {source, false});
  rig.free(rig.pools.allocate(30 * kMiB, rig.stream(), id));
  rig.pools.releasePool(id);
  source->refuse = [&] {
    std::thread([&] {
      rig.pools.createOrIncrefPool({0, 1'000'000'002});
    }).join();  // closes what it can
    return true;
  };
  rig.allocator.emptyCache();
  source->refuse = nullptr;
  CHECK(rig.known(id));
  CHECK(source->count() == 1);
  rig.allocator.audit();
  rig.pools.emptyCache(id);
  CHECK(source->count() == 0);
  CHECK(!rig.known(id));
}

TEST_CASE("blocks outlive a pool with a source, and every segment goes back to it", "[pools]") {
  PoolRig rig;
  const auto source = std::make_shared<CountedSource>(rig.sim());
  const Stream s = rig.stream();
  void *small = nullptr, *large = nullptr;
  MempoolId_t id;
  {
    MemPool pool(rig.pools, {source});
    id = pool.id();
    small = pool.allocate(kKiB, s);
    large = pool.allocate(40 * kMiB, s);
    rig.free(pool.allocate(50 * kMiB, s));
  }
  CHECK(source->count() == 2);  // what was free went with the MemPool
  rig.touch(s, small);
  rig.touch(s, large);
  rig.free(small);
  rig.free(large);
  rig.finish();
  rig.pools.emptyCache(id);
  CHECK(!rig.known(id));
  CHECK(source->count() == 0);
  CHECK(source.use_count() == 1);
}

TEST_CASE("a pool that any emptyCache takes its last memory from is gone, and its source with it",
          "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  for (const int whose : {0, 1, 2}) {
    const auto source = std::make_shared<CountedSource>(rig.sim());
    auto pool = std::make_unique<MemPool>(rig.pools, MemPoolOptions{source});
    const MempoolId_t id = pool->id();
    void* const block = pool->allocate(kKiB, s);
    pool.reset();
    rig.free(block);
    if (whose == 0) rig.pools.emptyCache(id);
    if (whose == 1) rig.pools.emptyUnowned();
    if (whose == 2) rig.allocator.emptyCache();
    CAPTURE(whose);
    CHECK(source->count() == 0);
    CHECK(!rig.known(id));
    CHECK(source.use_count() == 1);
  }
}

TEST_CASE("a source that has no more makes the pool's requests fail, and only them", "[pools]") {
  PoolRig rig;
  const auto source = std::make_shared<CountedSource>(rig.sim(), 64 * kMiB);
  MemPool pool(rig.pools, {source});
  const Stream s = rig.stream();
  void* block = pool.allocate(40 * kMiB, s);
  CHECK_THROWS_AS(pool.allocate(40 * kMiB, s), OutOfMemory);
  void* fits = pool.allocate(24 * kMiB, s);
  void* elsewhere = rig.allocate(40 * kMiB, s);
  CHECK(rig.holds(pool.id(), {block, fits}));
  for (void* each : {block, fits, elsewhere}) rig.free(each);
  void* whole = pool.allocate(64 * kMiB, s);  // what lay free went back first
  rig.free(whole);
}

TEST_CASE("a capture into a pool with a source holds its segments in place", "[pools]") {
  PoolRig rig;
  const auto source = std::make_shared<CountedSource>(rig.sim());
  MemPool pool(rig.pools, {source});
  const Stream s = rig.stream();
  Graph graph(rig.pools);
  graph.captureBegin(s, pool.id());
  const void* temporary = rig.temporary(10 * kMiB, s);
  CHECK(source->covers(temporary));
  graph.captureEnd();
  pool.emptyCache();
  CHECK(source->covers(temporary));
  graph.replay(s);
  rig.finish();
  graph.reset();
  pool.emptyCache();
  CHECK(source->count() == 0);
}

}  // namespace cistern::test
