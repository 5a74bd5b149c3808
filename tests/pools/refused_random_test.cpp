// Outside of captures, with queued work complete: what emptyCache and the same request again would
// serve is served at once. Shown on random programs, under random options.
#include <memory>
#include <random>

#include "tests/pools/pools_support.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

using WorldRandom = std::mt19937_64;

std::uint64_t drawBelow(WorldRandom& random, std::uint64_t end) { return random() % end; }

std::string_view oneOf(WorldRandom& random, const std::vector<std::string_view>& all) {
  return all[drawBelow(random, all.size())];
}

std::string randomConf(WorldRandom& random) {
  std::string conf;
  for (const std::string_view part :
       {oneOf(random, {"backing:pages", "backing:pages", "backing:segments"}),
        oneOf(random, {"", "", "page_size:2MiB", "page_size:8MiB"}),
        oneOf(random, {"", "recycle:eager", "recycle:off", "recycle_budget:none"}),
        oneOf(random, {"", "background_thread:false"}),
        oneOf(random,
              {"", "", "max_split_size:20MiB,max_non_split_rounding:2MiB", "max_split_size:24MiB"}),
        oneOf(random, {"", "", "roundup_power2_divisions:4"}),
        oneOf(random, {"", "garbage_collection_threshold:0.5", "garbage_collection_threshold:0.1"}),
        oneOf(random, {"", "", "memory_fraction:0.7"}), oneOf(random, {"", "", "limit:90MiB"}),
        oneOf(random, {"", "large_segment_size:2MiB", "large_segment_size:32MiB"}),
        oneOf(random, {"", "cross_stream_reuse:wait", "cross_stream_reuse:false"}),
        oneOf(random, {"", "prefer_old_segments:false"}),
        oneOf(random, {"", "thread_cache:off"})}) {
    if (!part.empty()) conf.append(conf.empty() ? "" : ",").append(part);
  }
  return conf;
}

/// Requests of odd sizes on several streams in several pools, which are used for a while.
class RefusedWorld {
 public:
  RefusedWorld(const std::string& conf, unsigned seed)
      : random_(seed), rig_(conf, simOf((64 + below(4) * 17) * kMiB, 200'000)) {
    for (int i = 0; i < 3; ++i) streams_.push_back(rig_.stream());
    streams_.push_back(Stream{});
    for (int i = 0; i < 3; ++i) pools_.push_back(newPool());
    if (below(3) == 0) capture();
  }
  ~RefusedWorld() {
    rig_.finish();
    for (const auto& [block, stream] : held_) rig_.free(block);
    if (graph_) graph_->reset();
  }
  RefusedWorld(const RefusedWorld&) = delete;
  RefusedWorld& operator=(const RefusedWorld&) = delete;

  struct Outcome {
    int refused = 0, wrongly = 0;
  };
  Outcome run(int steps) {
    Outcome outcome;
    for (int i = 0; i < steps; ++i) {
      const std::size_t where = below(pools_.size() + 2), bytes = randomBytes();
      const Stream stream = streams_[below(streams_.size())];
      void* block = tried(where, bytes, stream);
      if (block == nullptr) {
        rig_.finish();
        block = tried(where, bytes, stream);
      }
      if (block == nullptr) {
        ++outcome.refused;
        rig_.allocator.emptyCache();
        block = tried(where, bytes, stream);
        outcome.wrongly += block != nullptr;
      }
      if (block != nullptr) use(block, stream);
      while (held_.size() > (block == nullptr ? most_ / 2 : most_)) freeAny();
      if (below(40) == 0) changeSomething();
    }
    return outcome;
  }

 private:
  std::uint64_t below(std::uint64_t end) { return drawBelow(random_, end); }
  std::size_t randomBytes() {
    switch (below(4)) {
      case 0:
        return 1 + below(4 * kKiB);
      case 1:
        return 1 + below(kMiB);
      case 2:
        return kMiB + 1 + below(4 * kMiB);
      default:
        return kMiB + 1 + below(50 * kMiB);
    }
  }
  std::unique_ptr<MemPool> newPool() {
    MemPoolOptions options;
    options.use_on_oom = below(4) == 0;
    options.no_split = below(4) == 0;
    return std::make_unique<MemPool>(rig_.pools, options);
  }
  void capture() {
    graph_ = std::make_unique<Graph>(rig_.pools);
    GraphCapture capture(*graph_, streams_[0], pools_[0]->id(), CaptureMode::kRelaxed);
    rig_.temporary(1 + below(10 * kMiB), streams_[0]);
    rig_.temporary(1 + below(kMiB), streams_[0]);
    capture.end();
  }
  void* tried(std::size_t where, std::size_t bytes, Stream stream) {
    try {
      return where < pools_.size() ? pools_[where]->allocate(bytes, stream)
                                   : rig_.allocate(bytes, stream);
    } catch (const OutOfMemory&) {
      return nullptr;
    }
  }
  void use(void* block, Stream stream) {
    rig_.touch(stream, block);
    const Stream other = streams_[below(streams_.size())];
    if (other != stream && below(3) == 0) rig_.allocator.recordStream(block, other);
    held_.emplace_back(block, stream);
    if (below(4) == 0) rig_.sim().advanceHost(300'000);
  }
  void freeAny() {
    std::swap(held_[below(held_.size())], held_.back());
    rig_.free(held_.back().first);
    held_.pop_back();
  }
  void changeSomething() {
    switch (below(3)) {
      case 0:
        return rig_.allocator.setLimit((30 + below(90)) * kMiB);
      case 1:
        return void(pools_.back() = newPool());  // what is held of the former stays
      default:
        most_ = 2 + below(30);
    }
  }

  WorldRandom random_;
  PoolRig rig_;
  std::vector<Stream> streams_;
  std::vector<std::unique_ptr<MemPool>> pools_;
  std::unique_ptr<Graph> graph_;
  std::vector<std::pair<void*, Stream>> held_;
  std::size_t most_ = 12;
};

}  // namespace

TEST_CASE("no request is refused that emptyCache would have helped", "[pools]") {
  int refused = 0;
  for (unsigned seed = 0; seed < (kSlowBuild ? 20u : 200u); ++seed) {
    WorldRandom random(seed);
    const std::string conf = randomConf(random);
    RefusedWorld world(conf, seed);
    const auto outcome = world.run(150);
    INFO("seed " << seed << ": " << conf);
    CHECK(outcome.wrongly == 0);
    refused += outcome.refused;
  }
  CHECK(refused > 100);
}

TEST_CASE("what is free in a live pool goes back before another's request is refused", "[pools]") {
  for (const char* conf : {"", "garbage_collection_threshold:0.5"}) {
    PoolRig rig(conf, simOf(64 * kMiB));
    MemPool one(rig.pools), two(rig.pools);
    rig.free(one.allocate(26 * kMiB, Stream{}));
    rig.free(two.allocate(34 * kMiB, Stream{}));
    void* const block = one.allocate(42 * kMiB, Stream{});
    CHECK(rig.reservedBy(two.id()) == 0);
    rig.free(block);
    rig.free(rig.allocate(60 * kMiB, Stream{}));
    CHECK(rig.reservedBy(one.id()) == 0);
  }
}

TEST_CASE("a live pool keeps what is free in it while others' memory is enough", "[pools]") {
  PoolRig rig("", simOf(64 * kMiB));
  MemPool pool(rig.pools);
  rig.free(pool.allocate(20 * kMiB, Stream{}));
  rig.free(rig.allocate(40 * kMiB, rig.stream()));
  rig.free(rig.allocate(42 * kMiB, Stream{}));
  CHECK(rig.reservedBy(pool.id()) == mib(20));
}

TEST_CASE("what a live pool's graph holds does not go back", "[pools]") {
  PoolRig rig("", simOf(64 * kMiB));
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  Graph graph(rig.pools);
  {
    GraphCapture capture(graph, s, pool.id(), CaptureMode::kRelaxed);
    rig.temporary(30 * kMiB, s);
    capture.end();
  }
  CHECK(rig.outOfMemory(50 * kMiB, Stream{}));
  graph.replay(s);
  rig.finish();
}

}  // namespace cistern::test
