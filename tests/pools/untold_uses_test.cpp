// Memory that is used on streams which the allocator was not told of: random programs that keep to
// PyTorch's rules and to nothing more, and programs of the shapes that trainers have.
#include "tests/pools/pools_support.hpp"
#include "tests/support/slow_build.hpp"
#include "tests/support/untold_program.hpp"

namespace cistern::test {
namespace {

using Tensor = UntoldProgram::Tensor;

struct Random {
  explicit Random(std::uint64_t seed) : engine(seed) {}
  std::uint64_t below(std::uint64_t n) { return engine() % n; }
  bool one(std::uint64_t in) { return below(in) == 0; }
  /// Log-uniform.
  std::uint64_t bytes(double from, double to) {
    return std::uint64_t(std::exp2(std::uniform_real_distribution<>(from, to)(engine)));
  }
  std::mt19937_64 engine;
};

constexpr const char* kUntoldConfs[] = {"",
                                        "recycle:eager",
                                        "background_thread:false",
                                        "recycle:eager,background_thread:false,page_size:2MiB",
                                        "cross_stream_reuse:wait",
                                        "backing:segments",
                                        "backing:segments,cross_stream_reuse:wait",
                                        "garbage_collection_threshold:0.5"};

/// A random program on its own device: some streams only use memory, and never allocate.
class World {
 public:
  explicit World(std::uint64_t seed)
      : random_(seed),
        rig_(kUntoldConfs[random_.below(std::size(kUntoldConfs))], config(random_)),
        program_(rig_.sim(), rig_.allocator) {
    const std::uint64_t owners = 1 + random_.below(4), users = random_.below(3);
    for (std::uint64_t i = 0; i < owners + users; ++i) streams_.push_back(rig_.stream());
    for (Stream stream : streams_) rig_.allocator.registerStream(stream);
    owners_ = owners;
  }

  void run(int steps, bool to_the_end = true) {
    for (int i = 0; i < steps; ++i) step();
    while (to_the_end && !live_.empty()) dropOne();
  }
  /// A graph whose branches use each other's memory untold, replayed.
  void capture(int steps) {
    while (!live_.empty()) dropOne();
    program_.finish();
    Graph graph(rig_.pools);
    const Stream origin = streams_[0];
    GraphCapture capture(graph, origin, {}, CaptureMode::kRelaxed);
    for (std::size_t i = 1; i < streams_.size(); ++i) rig_.join(streams_[i], origin);
    in_capture_ = true;
    for (int i = 0; i < steps; ++i) step();
    while (!live_.empty()) dropOne();
    for (std::size_t i = 0; i < owners_; ++i) program_.payDebts(streams_[i]);
    for (std::size_t i = 1; i < streams_.size(); ++i) rig_.join(origin, streams_[i]);
    capture.end();
    in_capture_ = false;
    graph.replay(origin);
    graph.replay(origin);
    program_.finish();
  }
  /// The device captures some of the streams, which the allocator is not told. The others go on.
  void beside(int steps) {
    if (streams_.size() == 1) return;
    const std::vector<Stream> all = streams_;
    const std::uint64_t owners = owners_, rest = 1 + random_.below(all.size() - 1);
    streams_.resize(rest);
    owners_ = std::min(owners, rest);
    for (std::size_t i = live_.size(); i-- > 0;) {
      if (std::ranges::count(streams_, live_[i].owner) > 0) continue;
      program_.drop(live_[i]);
      live_.erase(live_.begin() + std::ptrdiff_t(i));
    }
    for (std::size_t i = rest; i < all.size(); ++i)
      rig_.sim().beginCapture(all[i], CaptureMode::kRelaxed).orThrow();
    for (int i = 0; i < steps; ++i) step();
    for (std::size_t i = rest; i < all.size(); ++i)
      rig_.sim().destroyGraph(rig_.sim().endCapture(all[i]).orThrow()).orThrow();
    streams_ = all;
    owners_ = owners;
  }

 private:
  static sim::SimConfig config(Random& random) {
    constexpr std::uint64_t kCapacities[] = {256 * kMiB, kGiB, 16 * kGiB};
    constexpr std::uint64_t kLags[] = {0, 100'000, 10'000'000};
    return simOf(kCapacities[random.below(3)], kLags[random.below(3)]);
  }
  Stream anyOwner() { return streams_[random_.below(owners_)]; }
  Stream anyStream() { return streams_[random_.below(streams_.size())]; }
  Tensor& anyLive() { return live_[random_.below(live_.size())]; }
  void dropOne() {
    std::swap(anyLive(), live_.back());
    if (random_.one(8) && !in_capture_) program_.recordUses(live_.back());
    program_.drop(live_.back());
    live_.pop_back();
  }
  void step() {
    const std::uint64_t what = random_.below(in_capture_ ? 90 : 100);
    if (what < 35 || live_.empty()) return allocate();
    if (what < 65) return use();
    if (what < 85) return dropOne();
    if (what < 90) return program_.payDebts(anyOwner());
    if (what < 96) return rig_.sim().advanceHost(random_.bytes(8, 24));
    if (what < 98) return rig_.allocator.emptyCache();
    rig_.sim().synchronizeStream(anyStream()).orThrow();
  }
  void allocate() {
    try {
      live_.push_back(program_.make(random_.bytes(random_.one(3) ? 9 : 20, 26), anyOwner()));
      if (!random_.one(10)) program_.use(live_.back().owner, "fill", {}, {&live_.back()}, time());
    } catch (const OutOfMemory&) {
      if (!live_.empty()) dropOne();
    }
  }
  void use() {
    Tensor &from = anyLive(), &to = anyLive();
    if (&from == &to) return program_.use(anyStream(), "update", {}, {&to}, time());
    program_.use(anyStream(), "copy", {&from}, {&to}, time());
  }
  std::uint64_t time() { return random_.bytes(9, 22); }

  Random random_;
  PoolRig rig_;
  UntoldProgram program_;
  std::vector<Stream> streams_;
  std::size_t owners_ = 1;
  std::vector<Tensor> live_;
  bool in_capture_ = false;
};

void eachSeed(std::uint64_t from, int count, const std::function<void(std::uint64_t)>& run) {
  for (int i = 0; i < count; ++i) {
    INFO("seed " << from + std::uint64_t(i));
    run(from + std::uint64_t(i));
  }
}

}  // namespace

TEST_CASE("programs that order untold uses as late as they may do not race", "[pools][untold]") {
  eachSeed(1, kSlowBuild ? 60 : 400, [](std::uint64_t seed) { World(seed).run(300); });
}

TEST_CASE("branches of a graph that use memory untold do not race", "[pools][untold]") {
  eachSeed(1, kSlowBuild ? 40 : 300, [](std::uint64_t seed) {
    World world(seed);
    world.run(60);
    world.capture(120);
    world.run(60);
  });
}

// What such a stream has still to do from before its capture, nobody can ask.
TEST_CASE("programs beside captures that are not announced do not race", "[pools][untold]") {
  eachSeed(1, kSlowBuild ? 60 : 400, [](std::uint64_t seed) {
    World world(seed);
    for (int i = 0; i < 4; ++i) {
      world.run(40, false);
      world.beside(40);
    }
    world.run(40);
  });
}

TEST_CASE("a stream that only reads memory is waited for before others get it", "[pools][untold]") {
  PoolRig rig("", simOf(80 * kGiB));
  const Stream owner = rig.stream(), reader = rig.stream(), third = rig.stream();
  rig.allocator.registerStream(reader);
  void* seen = rig.written(512 * kMiB, owner);
  rig.join(reader, owner);
  rig.work.delay(reader, kLongNs);
  rig.read(reader, seen);
  rig.free(seen);
  rig.sim().advanceHost(kLongNs / 2);  // the owner is idle, the reader is not
  rig.temporary(512 * kMiB, third);
  rig.allocator.emptyCache();
  rig.sim().advanceHost(kLongNs);
  const std::int64_t before = reservedOf(rig.allocator);
  rig.temporary(512 * kMiB, rig.stream());
  CHECK(reservedOf(rig.allocator) <= std::max(before, mib(512)));  // it serves everybody
  CHECK_THROWS_AS(rig.allocator.registerStream(Stream{12345}), InvalidArgument);
}

}  // namespace cistern::test
