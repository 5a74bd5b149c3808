// Checkpoints and restores among random requests of several streams, which come and go. What the
// pool holds after each is what the model says; at the end no two streams were found on the same
// memory at once.
#include <algorithm>
#include <map>
#include <random>

#include "tests/pools/pools_support.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kStreams = 3;

sim::SimConfig deviceFor(std::uint64_t seed) {
  sim::SimConfig config = simOf(96 * kMiB, seed % 2 == 0 ? 20'000 : 0);
  config.reuse_streams = seed % 3 == 0;
  return config;
}

const char* optionsFor(std::uint64_t seed) {
  const char* const all[] = {"backing:pages", "backing:segments", "backing:pages,page_size:2M",
                             "backing:segments,garbage_collection_threshold:0.2"};
  return all[seed % std::size(all)];
}

/// What was done, over all seeds: a test in which nothing is set back shows nothing.
struct Done {
  int set_back = 0, refused = 0, made = 0, ordered = 0, forgotten = 0;
};

class RandomRun {
 public:
  explicit RandomRun(std::uint64_t seed)
      : rig_(optionsFor(seed), deviceFor(seed)),
        pool_(rig_.pools, {nullptr, true, seed % 5 == 0}),
        random_(seed) {
    for (Stream& stream : streams_) stream = rig_.stream();
  }
  ~RandomRun() {
    for (const auto& [address, block] : live_) rig_.free(toPointer(address));
    for (void* block : elsewhere_) rig_.free(block);
    CHECK(rig_.sim().callsOnDeadStreams() == 0);
  }
  RandomRun(const RandomRun&) = delete;
  RandomRun& operator=(const RandomRun&) = delete;

  void step(Done& done) {
    const std::uint64_t dice = below(100);
    if (dice < 38) return take();
    if (dice < 66) return letGo();
    if (dice < 72) return useElsewhere();
    if (dice < 77) return inTheDefaultPool();
    if (dice < 80) return replaceStream(done);
    if (dice < 82) return rig_.pools.emptyCache(pool_.id());
    if (dice < 83) return rig_.allocator.emptyCache();
    if (dice < 85) return rig_.finish();
    if (dice < 92) return remember();
    return setBack(done);
  }
  void check() {
    CHECK(rig_.pools.getCheckpointState(pool_.id()).blocks == blocks());
    rig_.allocator.audit();
  }

 private:
  std::uint64_t below(std::uint64_t most) { return random_() % most; }
  Stream anyStream() { return streams_[below(kStreams)]; }
  bool alive(Stream stream) const {
    return std::find(std::begin(streams_), std::end(streams_), stream) != std::end(streams_);
  }
  std::size_t size() {
    const std::uint64_t dice = below(10);
    if (dice < 3) return 1 + below(kMiB);
    return dice < 8 ? kMiB + below(6 * kMiB) : 1 + below(40 * kMiB);
  }
  std::vector<LiveBlock> blocks() const {
    std::vector<LiveBlock> blocks;
    for (const auto& [address, block] : live_) blocks.push_back(block);
    return blocks;
  }

  void work(Stream stream, const LiveBlock& block, sim::AccessKind kind) {
    const std::uint64_t ns = below(4) == 0 ? 2'000'000 : 2'000;
    rig_.sim().launch(stream, {"work", {{block.address, block.bytes, kind}}, ns, {}}).orThrow();
  }
  void take() {
    const std::size_t bytes = size();
    const Stream stream = anyStream();
    try {
      void* const block = pool_.allocate(bytes, stream);
      const LiveBlock made{toAddress(block), rig_.allocator.blockSize(block), bytes, stream};
      live_.emplace(made.address, made);
      work(stream, made, sim::AccessKind::kWrite);
    } catch (const OutOfMemory&) {
      letGo();
    }
  }
  void letGo() {
    if (live_.empty()) return;
    const auto it = std::next(live_.begin(), std::ptrdiff_t(below(live_.size())));
    rig_.free(toPointer(it->first));
    live_.erase(it);
  }
  void useElsewhere() {
    if (live_.empty()) return;
    const LiveBlock& block = std::next(live_.begin(), std::ptrdiff_t(below(live_.size())))->second;
    const Stream other = anyStream();
    if (other == block.stream || !alive(block.stream)) return;
    rig_.join(other, block.stream);
    work(other, block, sim::AccessKind::kRead);
    rig_.allocator.recordStream(toPointer(block.address), other);
  }
  // Takes pages, or what a pool lends.
  void inTheDefaultPool() {
    if (elsewhere_.size() > 2) {
      for (void* block : elsewhere_) rig_.free(block);
      return elsewhere_.clear();
    }
    try {
      elsewhere_.push_back(rig_.written(size(), anyStream()));
    } catch (const OutOfMemory&) {
    }
  }
  void replaceStream(Done& done) {
    Stream& stream = streams_[below(kStreams)];
    rig_.allocator.forgetStream(stream);
    rig_.sim().destroyStream(stream).orThrow();
    stream = rig_.stream();
    ++done.forgotten;
    try {  // from here on, one with the handle of the former goes on where that ended
      rig_.free(rig_.allocate(1, stream));
    } catch (const OutOfMemory&) {
    }
  }
  void remember() {
    PoolCheckpoint& place = checkpoints_[below(std::size(checkpoints_))];
    place = rig_.pools.getCheckpointState(pool_.id());
    CHECK(place.blocks == blocks());
  }

  void setBack(Done& done) {
    const PoolCheckpoint& to = checkpoints_[below(std::size(checkpoints_))];
    if (to.id == MempoolId_t{}) return;
    const std::uint64_t ordered = countOf(rig_.sim(), Call::kWaitEvent);
    CheckpointDelta delta;
    try {
      delta = rig_.pools.setCheckpointPoolState(to);
    } catch (const PoolError&) {
      ++done.refused;
      return check();
    }
    ++done.set_back;
    done.made += int(delta.made.size());
    done.ordered += countOf(rig_.sim(), Call::kWaitEvent) > ordered ? 1 : 0;
    live_.clear();
    for (const LiveBlock& block : to.blocks) live_.emplace(block.address, block);
    check();
    for (void* made : delta.made) {
      const LiveBlock& block = live_.at(toAddress(made));
      if (alive(block.stream)) work(block.stream, block, sim::AccessKind::kWrite);
    }
  }

  PoolRig rig_;
  MemPool pool_;
  std::mt19937_64 random_;
  Stream streams_[kStreams];
  std::map<Address, LiveBlock> live_;  ///< the model: what the pool holds
  std::vector<void*> elsewhere_;       ///< blocks of the default pool
  PoolCheckpoint checkpoints_[3];
};

}  // namespace

TEST_CASE("pools are set back in order whatever happened since", "[pools][long]") {
  constexpr std::uint64_t kSeeds = kSlowBuild ? 400 : 1'500;
  Done done;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    INFO("seed " << seed);
    RandomRun run(seed);
    for (int i = 0; i < 250; ++i) run.step(done);
    run.check();
  }
  CAPTURE(done.set_back, done.refused, done.made, done.ordered, done.forgotten);
  CHECK(done.set_back > int(2 * kSeeds));
  CHECK(done.refused > int(kSeeds / 2));
  CHECK(done.made > int(2 * kSeeds));
  CHECK(done.ordered > int(kSeeds / 4));
  CHECK(done.forgotten > int(kSeeds));
}

}  // namespace cistern::test
