// Pools in host memory beside others, at the edge of what the device and the host have, with
// faults.
#include <array>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

/// A block that the program holds, with a pattern in it.
struct Held {
  void* block = nullptr;
  std::size_t bytes = 0;
  std::uint32_t seed = 0;
  Stream stream;
  Location location = Location::kDevice;
};

/// A device and a host of 64 MiB each. Pools come and go; each is in one of the two.
class Edge {
 public:
  explicit Edge(std::uint32_t seed, double faults)
      // The sums of a snapshot are those of the statistics while nobody gives pages back.
      : faults_(faults),
        random_(seed),
        rig_(faults == 0 ? "background_thread:false" : "", configured()) {
    for (int i = 0; i < 3; ++i) streams_.push_back(rig_.stream());
    for (int i = 0; i < 4; ++i) pools_.push_back(anew());
  }
  ~Edge() {
    rig_.sim().faults().clear();
    while (!held_.empty()) free();
  }

  void round() {
    switch (upTo(12)) {
      case 0:
        pools_[upTo(pools_.size())] = anew();  // blocks of the one that goes stay valid
        break;
      case 1:
        upTo(2) == 0 ? rig_.allocator.emptyCache() : pools_[upTo(pools_.size())]->emptyCache();
        break;
      case 2:
        if (!held_.empty()) use(held_[upTo(held_.size())]);
        break;
      case 3:
      case 4:
      case 5:
        if (!held_.empty()) free();
        break;
      case 6:
        rig_.allocator.audit();
        rig_.sim().audit();
        if (faults_ == 0)
          CHECK(sumsOf(rig_.allocator.snapshot()) == sumsOf(rig_.allocator.memoryStats()));
        break;
      default:
        allocate();
    }
  }
  std::uint64_t served(Location where) const { return served_[std::size_t(where)]; }
  std::uint64_t refused() const { return refused_; }
  std::uint64_t wrong() { return rig_.work.mismatches(); }

 private:
  static sim::SimConfig configured() {
    sim::SimConfig config = simOf(64 * kMiB, 50'000);
    config.host_page_capacity = 64 * kMiB;
    return config;
  }
  std::size_t upTo(std::size_t end) { return random_() % end; }
  std::unique_ptr<MemPool> anew() {
    MemPoolOptions options;
    options.location = upTo(2) == 0 ? Location::kDevice : Location::kHost;
    auto pool = std::make_unique<MemPool>(rig_.pools, options);
    location_of_[pool.get()] = options.location;
    return pool;
  }

  void allocate() {
    MemPool& pool = *pools_[upTo(pools_.size())];
    const bool in_default = upTo(4) == 0;
    Held held;
    held.bytes = upTo(3) == 0 ? 4096 + upTo(200'000) / 4 * 4 : (1 + upTo(24)) * kMiB;
    held.seed = std::uint32_t(random_());
    held.stream = streams_[upTo(streams_.size())];
    held.location = in_default ? Location::kDevice : location_of_.at(&pool);
    try {
      held.block = in_default ? rig_.allocator.allocate(held.bytes, held.stream)
                              : pool.allocate(held.bytes, held.stream);
    } catch (const OutOfMemory& failure) {
      CHECK(failure.report().location == held.location);
      ++refused_;
      return;
    }
    CHECK(rig_.allocator.locationOf(held.block) == held.location);
    ++served_[std::size_t(held.location)];
    held_.push_back(held);
    withoutFaults(
        [&] { rig_.work.fill(held.stream, toAddress(held.block), held.bytes, held.seed); });
  }

  // On another stream, which is ordered behind the block's.
  void use(const Held& held) {
    const Stream by = streams_[upTo(streams_.size())];
    withoutFaults([&] {
      rig_.join(by, held.stream);
      rig_.allocator.recordStream(held.block, by);
      rig_.work.verify(by, toAddress(held.block), held.bytes, held.seed);
    });
  }

  void free() {
    const std::size_t which = upTo(held_.size());
    const Held held = held_[which];
    withoutFaults(
        [&] { rig_.work.verify(held.stream, toAddress(held.block), held.bytes, held.seed); });
    rig_.allocator.free(held.block);
    held_[which] = held_.back();
    held_.pop_back();
  }

  // What the test does itself does not fail.
  template <class Do>
  void withoutFaults(Do what) {
    rig_.sim().faults().clear();
    what();
    if (faults_ > 0) rig_.sim().faults().failRandomly(faults_, random_());
  }

  const double faults_;  ///< the probability that a device call of the allocator's fails
  std::mt19937 random_;
  PoolRig rig_;
  std::vector<Stream> streams_;
  std::map<const MemPool*, Location> location_of_;
  std::vector<std::unique_ptr<MemPool>> pools_;
  std::vector<Held> held_;
  std::array<std::uint64_t, 2> served_{};
  std::uint64_t refused_ = 0;
};

}  // namespace

TEST_CASE("pools in host memory stay apart from others at the edge, whatever fails",
          "[pools][host][pages][random]") {
  for (std::uint32_t seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    Edge edge(seed, seed % 2 == 0 ? 0.02 : 0);
    for (int i = 0; i < 300; ++i) edge.round();
    CHECK(edge.served(Location::kDevice) > 10);
    CHECK(edge.served(Location::kHost) > 10);
    CHECK(edge.refused() > 0);
    CHECK(edge.wrong() == 0);
  }
}

}  // namespace cistern::test
