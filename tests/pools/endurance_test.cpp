// Graphs that are replayed thousands of times while the same allocator serves eager work whose
// memory moves, and a pool that lends most of the device; with real data, checked word by word.
#include <deque>

#include "allocator/device/backends.hpp"
#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

bool simulated(Device& device) { return isSimulated(device.backend()); }

/// A graph of three streams: each layer writes an activation on the first, hands it to a side
/// stream that checks it beside a temporary of its own, and checks it again when that has joined.
class Layers {
 public:
  Layers(DeviceWork& work, Pools& pools, const Streams& streams, std::uint32_t seed)
      : work_(work), pools_(pools), streams_(streams), graph_(pools), seed_(seed) {
    GraphCapture capture(graph_, streams[0]);
    for (std::uint32_t layer = 0; layer < 8; ++layer) record(layer);
    capture.end();
  }
  Graph& graph() { return graph_; }

 private:
  void record(std::uint32_t layer) {
    const Stream main = streams_[0], side = streams_[1 + layer % 2];
    CachingAllocator& allocator = pools_.allocator();
    const std::size_t bytes = (1 + layer * 5 % 7) * 512 * kKiB, less = bytes / 2;
    void* activation = allocator.allocate(bytes, main);
    work_.fill(main, toAddress(activation), bytes, seed_ + layer);
    follow(side, main);
    void* temporary = allocator.allocate(less, side);
    work_.fill(side, toAddress(temporary), less, seed_ + 1'000 + layer);
    work_.verify(side, toAddress(activation), bytes, seed_ + layer);
    work_.verify(side, toAddress(temporary), less, seed_ + 1'000 + layer);
    allocator.free(temporary);
    allocator.recordStream(activation, side);
    follow(main, side);
    work_.verify(main, toAddress(activation), bytes, seed_ + layer);
    allocator.free(activation);
  }
  void follow(Stream later, Stream earlier) {
    Device& device = work_.device();
    const Event event = device.createEvent().orThrow();
    device.recordEvent(event, earlier).orThrow();
    device.waitEvent(later, event).orThrow();
    device.destroyEvent(event).orThrow();
  }

  DeviceWork& work_;
  Pools& pools_;
  const Streams& streams_;
  Graph graph_;
  std::uint32_t seed_;
};

/// Eager work of changing sizes, so that misses move pages.
class Eager {
 public:
  Eager(DeviceWork& work, CachingAllocator& allocator, Stream stream)
      : work_(work), allocator_(allocator), stream_(stream) {}
  void step(std::uint32_t i) {
    const std::size_t bytes = (1 + i * 7 % 11) * kMiB;
    void* block = allocator_.allocate(bytes, stream_);
    work_.fill(stream_, toAddress(block), bytes, i);
    held_.push_back({block, bytes, i});
    if (held_.size() > 4) drop();
    if (i % (simulated(work_.device()) ? 5 : work_.isPlayed() ? 20 : 200) == 4)
      allocator_.emptyCache();
  }
  void drop() {
    const Held oldest = held_.front();
    held_.pop_front();
    work_.verify(stream_, toAddress(oldest.block), oldest.bytes, oldest.seed);
    allocator_.free(oldest.block);
  }
  bool done() const { return held_.empty(); }

 private:
  struct Held {
    void* block;
    std::size_t bytes;
    std::uint32_t seed;
  };
  DeviceWork& work_;
  CachingAllocator& allocator_;
  Stream stream_;
  std::deque<Held> held_;
};

}  // namespace

TEST_CASE("graphs replayed again and again among eager allocations keep every word",
          "[pools][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    Device& device = work.device();
    CachingAllocator allocator(device, optionsOf("recycle:eager,page_size:2M"));
    {
      Pools pools(allocator);
      const Streams streams(allocator, 3), others(allocator, 3), fresh(allocator, 1);
      // Elsewhere a stream that joined a capture goes on recording, and what it has freed stays
      // with it. Nor are two launches of one graph on two streams in order there.
      const bool strict = work.capturesAreStrict();
      const Stream first_runs_on[] = {streams[0], streams[strict ? 1 : 0]};
      const Stream second_runs_on = strict ? others[1] : fresh[0];
      Eager eager(work, allocator, others[0]);
      Layers first(work, pools, streams, 10'000'000), second(work, pools, others, 20'000'000);
      const std::uint32_t replays = simulated(device) ? 12 : work.isPlayed() ? 50 : 10'000;
      for (std::uint32_t i = 0; i < replays; ++i) {
        first.graph().replay(first_runs_on[i % 2]);
        eager.step(i);
        if (i % 2 == 0) second.graph().replay(second_runs_on);
        if (i % 8 == 7) pools.emptyCache(first.graph().pool());
      }
      while (!eager.done()) eager.drop();
      CHECK(work.mismatches() == 0);
      allocator.audit();
      first.graph().reset();
      second.graph().reset();
      allocator.emptyCache();
      if (strict) CHECK(reservedOf(allocator) == 0);
    }
  });
}

TEST_CASE("what a pool with use_on_oom has cached serves the default pool when it has 95 % of all",
          "[pools][gpu-too][long]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    Device& device = work.device();
    CachingAllocator allocator(device, optionsOf());
    {
      Pools pools(allocator);
      const Streams streams(allocator, 2);
      const std::size_t most =
          std::size_t(double(device.memoryInfo().orThrow().total_bytes) * 0.95) / kMiB * kMiB;
      const std::size_t asked = most / 2;
      for (const bool lends : {false, true}) {
        MemPoolOptions options;
        options.use_on_oom = lends;
        MemPool pool(pools, options);
        allocator.free(pool.allocate(most, streams[0]));
        work.device().synchronizeDevice().orThrow();
        void* block = allocator.allocate(asked, streams[1]);
        const auto left = pools.memoryStats(pool.id())[std::size_t(Stat::kReservedBytes)].current;
        if (!lends) CHECK(left == 0);  // the device had all of it back
        work.fill(streams[1], toAddress(block), 8 * kMiB, 5);
        work.verify(streams[1], toAddress(block), 8 * kMiB, 5);
        CHECK(work.mismatches() == 0);
        allocator.free(block);
      }
    }
    allocator.audit();
  });
}

}  // namespace cistern::test
