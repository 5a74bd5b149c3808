// Programs made up at random, of eager work in a pool and graphs that capture into it, replayed
// in no order with what was queued before. The race detector says whether that was safe.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <random>
#include <set>

#include "tests/pools/overflow_support.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

/// One program. What the documentation asks of programs is all that it keeps to: eager work in the
/// pool after a capture comes after the graph's replays, and streams that have joined join back.
class RandomProgram {
 public:
  RandomProgram(std::uint32_t seed, const char* conf, const sim::SimConfig& device)
      : random_(seed), rig_(conf, device), pool_(rig_.pools), elsewhere_(rig_.pools) {
    for (int i = 0; i < 5; ++i) streams_.push_back(rig_.stream());
    for (int i = 0; i < 2; ++i) bodies_.push_back(rig_.stream());
    elsewhere_stream_ = rig_.stream();
  }
  ~RandomProgram() {
    rig_.finish();
    for (const Held& held : eager_) rig_.free(held.block);
    for (const Held& held : captured_) rig_.free(held.block);
    rig_.finish();
  }
  RandomProgram(const RandomProgram&) = delete;
  RandomProgram& operator=(const RandomProgram&) = delete;

  void round() {
    for (int i = 0; i < 30; ++i) eagerStep(streams_, true);
    const bool other = oneIn(3);
    if (other) elsewhere_.captureBegin(elsewhere_stream_, {}, CaptureMode::kRelaxed);
    for (int i = 0; other && i < 6; ++i) eagerStep(streams_, true, elsewhere_stream_);
    captureSome(other);
    elsewhere_.abandon();
    afterwards();
    rig_.finish();
    elsewhere_.reset();
  }
  bool raced() { return !rig_.sim().races().empty(); }
  int captures() const { return captures_; }

 private:
  struct Held {
    void* block;
    Stream stream;
  };

  bool oneIn(unsigned n) { return random_() % n == 0; }
  Stream any(const std::vector<Stream>& of) { return of[random_() % of.size()]; }
  std::size_t size() {
    constexpr std::size_t kSizes[] = {512,      40 * kKiB, 900 * kKiB, 2 * kMiB,
                                      5 * kMiB, 8 * kMiB,  12 * kMiB,  20 * kMiB};
    return kSizes[random_() % 8];
  }
  void use(Stream stream, void* block) {
    const std::uint64_t bytes = rig_.allocator.blockSize(block);
    const std::uint64_t long_ns = oneIn(3) ? 20'000'000 : oneIn(2) ? 200'000 : 1'000;
    const sim::Access access{toAddress(block), bytes, sim::AccessKind::kWrite};
    rig_.sim().launch(stream, {"use", {access}, long_ns, nullptr}).orThrow();
  }
  void pass() { rig_.sim().advanceHost(random_() % (oneIn(4) ? 30'000'000 : 30'000)); }

  // In the pool, or in the default one. `also`: a stream that may use it beside its own.
  void eagerStep(const std::vector<Stream>& streams, bool in_pool, Stream also = {}) {
    if (oneIn(8)) pass();
    if (oneIn(25)) rig_.allocator.emptyCache();
    if (eager_.size() < 2 || (eager_.size() < 10 && oneIn(2))) {
      const Stream stream = any(streams);
      try {
        const bool pooled = in_pool && !oneIn(3);
        void* block = pooled ? pool_.allocate(size(), stream) : rig_.allocate(size(), stream);
        eager_.push_back({block, stream});
        use(stream, block);
      } catch (const OutOfMemory&) {
      }
      return;
    }
    const std::size_t which = random_() % eager_.size();
    const Held held = eager_[which];
    eager_.erase(eager_.begin() + std::ptrdiff_t(which));
    if (oneIn(2)) {
      const Stream user = also != Stream{} ? also : any(streams);
      const bool queued = user != also && capturing_.count(held.stream) == 0;
      if (queued) rig_.join(user, held.stream);
      rig_.allocator.recordStream(held.block, user);
      if (queued) use(user, held.block);
      if (queued && oneIn(2)) rig_.join(held.stream, user), use(held.stream, held.block);
    }
    rig_.free(held.block);
  }

  void captureSome(bool other) {
    ++captures_;
    const Stream origin = streams_[0];
    const CaptureMode mode = oneIn(3)   ? CaptureMode::kGlobal
                             : oneIn(2) ? CaptureMode::kThreadLocal
                                        : CaptureMode::kRelaxed;
    graph_.emplace(rig_.pools);
    graph_->captureBegin(origin, pool_.id(), mode);
    capturing_ = {origin};
    for (int i = 0; i < 60; ++i) {
      if (oneIn(10)) pass();
      if (oneIn(12)) joinOne();
      if (oneIn(14)) bodyStep(mode);
      if (other && oneIn(40) && elsewhere_.capturing()) elsewhere_.abandon();
      if (oneIn(3)) {
        eagerStep(outside(), false);
      } else {
        capturedStep();
      }
    }
    for (const Stream stream : capturing_) {
      if (body_of_.count(stream) == 0 && stream != origin) rig_.join(origin, stream);
    }
    while (!body_of_.empty()) endBody(*body_of_.begin());
    if (oneIn(6)) {
      graph_->abandon();
    } else {
      graph_->captureEnd();
    }
    capturing_.clear();
  }
  // Streams that no capture records.
  std::vector<Stream> outside() {
    std::vector<Stream> streams;
    for (const Stream stream : streams_) {
      if (capturing_.count(stream) == 0) streams.push_back(stream);
    }
    return streams;
  }
  void joinOne() {
    const Stream joins = streams_[1 + random_() % 3];  // the last never does
    std::vector<Stream> outer;
    for (const Stream stream : capturing_) {
      if (body_of_.count(stream) == 0) outer.push_back(stream);
    }
    rig_.join(joins, any(outer));
    capturing_.insert(joins);
  }
  void bodyStep(CaptureMode mode) {
    const Stream body = any(bodies_);
    if (body_of_.count(body) != 0) return endBody(body);
    rig_.sim().beginCapture(body, mode).orThrow();
    if (!oneIn(4) || included_.count(body) == 0) graph_->includeStream(body);
    included_.insert(body);
    body_of_.insert(body);
    capturing_.insert(body);
  }
  void endBody(Stream body) {
    ended_.push_back(rig_.sim().endCapture(body).orThrow());
    body_of_.erase(body);
    capturing_.erase(body);
  }
  void capturedStep() {
    const std::vector<Stream> streams(capturing_.begin(), capturing_.end());
    if (captured_.size() < 2 || (captured_.size() < 8 && oneIn(2))) {
      const Stream stream = any(streams);
      try {
        captured_.push_back({rig_.allocate(size(), stream), stream});
        use(stream, captured_.back().block);
      } catch (const OutOfMemory&) {
      }
      return;
    }
    const std::size_t which = random_() % captured_.size();
    const Held held = captured_[which];
    captured_.erase(captured_.begin() + std::ptrdiff_t(which));
    const Stream user = any(streams);
    const bool outer = capturing_.count(held.stream) != 0 && body_of_.count(held.stream) == 0 &&
                       body_of_.count(user) == 0;
    if (outer && user != held.stream && oneIn(2)) {
      rig_.join(user, held.stream);
      rig_.allocator.recordStream(held.block, user);
      use(user, held.block);
    }
    rig_.free(held.block);
  }

  // The graph, and its bodies, each on a stream that follows nothing; or no replay, and the memory
  // goes elsewhere.
  void afterwards() {
    const bool captured = graph_->pool() != MempoolId_t{};
    if (captured && !oneIn(4)) {
      graph_->replay(rig_.stream());
      std::vector<DeviceGraphExec> execs;
      for (const DeviceGraph body : ended_) {
        execs.push_back(rig_.sim().instantiate(body).orThrow());
        rig_.sim().launchGraph(execs.back(), rig_.stream()).orThrow();
      }
      rig_.finish();
      for (const DeviceGraphExec exec : execs) rig_.sim().destroyGraphExec(exec).orThrow();
    }
    for (const DeviceGraph body : ended_) rig_.sim().destroyGraph(body).orThrow();
    ended_.clear();
    included_.clear();
    graph_.reset();
    for (const Held& held : captured_) rig_.free(held.block);
    captured_.clear();
    for (int i = 0; i < 12; ++i) eagerStep(streams_, true);
  }

  std::mt19937 random_;
  PoolRig rig_;
  MemPool pool_;
  Graph elsewhere_;
  std::optional<Graph> graph_;
  Stream elsewhere_stream_;
  std::vector<Stream> streams_, bodies_;
  std::set<Stream> capturing_, body_of_, included_;
  std::vector<DeviceGraph> ended_;
  std::vector<Held> eager_, captured_;
  int captures_ = 0;
};

constexpr std::array kConfs = {
    "background_thread:false", "background_thread:false,thread_cache:off",
    "background_thread:false,recycle:eager", "background_thread:false,cross_stream_reuse:false"};
constexpr std::array kOverflowConfs = {
    "background_thread:false,overflow:256MiB",
    "background_thread:false,overflow:256MiB,thread_cache:off",
    "background_thread:false,overflow:256MiB,recycle:eager",
    "background_thread:false,overflow:64MiB,cross_stream_reuse:false"};

void runRandomPrograms(const std::array<const char*, 4>& confs, const sim::SimConfig& device) {
  constexpr std::uint32_t kSeeds = kSlowBuild ? 40 : 150;
  const char* seeds = std::getenv("CISTERN_TEST_SEEDS");
  const std::uint32_t count = seeds ? std::uint32_t(std::strtoul(seeds, nullptr, 10)) : kSeeds;
  int captures = 0;
  for (std::uint32_t seed = 1; seed <= count; ++seed) {
    const char* conf = confs[seed % confs.size()];
    INFO("seed " << seed << ", " << conf);
    RandomProgram program(seed, conf, device);
    for (int round = 0; round < 6 && !program.raced(); ++round) program.round();
    captures += program.captures();
    if (program.raced()) break;  // the rig says which
  }
  CHECK(captures == int(6 * count));
}

}  // namespace

TEST_CASE("no order is needed between a graph and what was queued before its capture",
          "[pools][long]") {
  runRandomPrograms(kConfs, simOf(192 * kMiB, 5'000));
}

TEST_CASE("no order is needed either where the memory of the host serves",
          "[pools][overflow][pages][long]") {
  runRandomPrograms(kOverflowConfs, overflowing(40 * kMiB, 512 * kMiB, 5'000));
}

}  // namespace cistern::test
