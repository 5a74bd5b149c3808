// The steps of a miss, in the order in which they are tried: the one of programs, and that of
// captures.
#include "allocator/engine/fallbacks.hpp"

#include <algorithm>
#include <string>

#include "allocator/engine/engine.hpp"
#include "allocator/engine/recording/recording.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/support/interposed_device.hpp"

namespace cistern::test {
namespace {

/// An engine that says what it does, each when it comes for the first time in a request.
struct StepsRig {
  StepsRig(const std::string& conf, std::uint64_t capacity)
      : sim(simOf(capacity)), engine(device, Options::parse(conf), capacity) {
    engine.core.limit.set(2 * capacity);  // it is the device that refuses
    device.before = [this](Call call) { note(call); };
    engine.core.hooks.addReclaim([this] { return note("callbacks"), reclaim && reclaim(); });
    engine.core.hooks.setTidier([this](Tidying why) {
      note(why == Tidying::kLastResort ? "pools" : "tidy");
      return false;
    });
  }

  void note(const std::string& what) {
    if (std::ranges::find(log, what) == log.end()) log.push_back(what);
  }
  void note(Call call) {
    switch (call) {
      case Call::kQueryEvent:
        return note("events");
      case Call::kFree:
        return note("gives back");
      case Call::kReleasePage:
        return note("undoes");  // pages that were made for it and are not enough
      case Call::kMalloc:
      case Call::kCreatePage:
        return note("grows");
      case Call::kSynchronizeEvent:
        return note("waits for a stream");
      case Call::kSynchronizeDevice:
        return note("waits for the device");
      case Call::kWaitEvent:
        return note("orders");
      default:
        return;
    }
  }
  /// One that the engine has met.
  Stream stream() {
    const Stream made = sim.createStream().orThrow();
    engine.core.streams.registerStream(made);
    return made;
  }
  Request request(std::uint64_t bytes, Stream of) {
    return engine.core.rules.request(bytes, of, &engine.core.default_pool);
  }
  /// A request that the heap's free memory does not serve; what was done for it.
  std::vector<std::string> serve(std::uint64_t bytes, Stream of) {
    const Request asked = request(bytes, of);
    Heap& heap = engine.stream_heaps.of(asked);
    log.clear();
    try {
      block = &engine.fallbacks.serve(heap, asked);
    } catch (const OutOfMemory&) {
      note("out of memory");
    }
    engine.accounting.audit();
    return log;
  }
  /// The block is freed while the stream, whose work never ends, uses it.
  void freePending(Block& of, Stream user) {
    sim.launch(user, {"never ends", {}, sim::kNever, nullptr}).orThrow();
    REQUIRE(engine.cross_stream.record(deviceAddress(of), user));
    Heap& heap = *segmentOf(of).heap.load();
    StreamUses uses;
    {
      const MutexLock lock(heap.mutex());
      uses = heap.setPending(of);
    }
    engine.cross_stream.deferFree(heap, of, uses);
  }
  void free(Block& of) {
    Heap& heap = *segmentOf(of).heap.load();
    const MutexLock lock(heap.mutex());
    heap.release(of, engine.core.now());
  }

  sim::SimDevice sim;
  InterposedDevice device{sim};
  std::vector<std::string> log;
  std::function<bool()> reclaim;
  Block* block = nullptr;
  Engine engine;
};

using Steps = std::vector<std::string>;

}  // namespace

TEST_CASE("a miss tries what costs the program nothing first, and waits last", "[engine][part]") {
  StepsRig rig("backing:segments,garbage_collection_threshold:0.2", 64 * kMiB);
  const Stream own = rig.stream(), user = rig.stream();
  CHECK(rig.serve(20 * kMiB, own) == Steps{"tidy", "callbacks", "grows"});
  rig.freePending(*rig.block, user);
  CHECK(rig.serve(22 * kMiB, own) == Steps{"events", "tidy", "callbacks", "grows"});
  rig.free(*rig.block);
  CHECK(rig.serve(50 * kMiB, own) == Steps{"events", "tidy", "callbacks", "gives back", "grows",
                                           "waits for a stream", "pools", "out of memory"});
}

TEST_CASE("a miss of pages waits for the device when nothing less is left", "[engine][part]") {
  StepsRig rig("backing:pages,background_thread:false", 64 * kMiB);
  const Stream own = rig.stream(), user = rig.stream();
  CHECK(rig.serve(20 * kMiB, own) == Steps{"tidy", "callbacks", "grows"});
  rig.freePending(*rig.block, user);
  const Steps steps = rig.serve(60 * kMiB, own);
  CHECK(steps == Steps{"events", "tidy", "callbacks", "grows", "undoes", "waits for a stream",
                       "pools", "waits for the device", "out of memory"});
}

TEST_CASE("the first step that serves ends a miss", "[engine][part]") {
  StepsRig rig("backing:segments", 64 * kMiB);
  const Stream own = rig.stream();
  (void)rig.serve(40 * kMiB, own);
  Block* const held = rig.block;
  rig.reclaim = [&] { return rig.free(*held), true; };
  CHECK(rig.serve(30 * kMiB, own) == Steps{"tidy", "callbacks"});
  rig.reclaim = nullptr;
  rig.free(*rig.block);
}

TEST_CASE("a miss of a capture neither gives back nor waits", "[engine][part]") {
  for (const char* conf : {"backing:segments,garbage_collection_threshold:0.2",
                           "backing:pages,background_thread:false"}) {
    StepsRig rig(conf, 64 * kMiB);
    const Stream own = rig.stream(), user = rig.stream(), captured = rig.stream();
    (void)rig.serve(20 * kMiB, own);
    rig.freePending(*rig.block, user);
    (void)rig.serve(22 * kMiB, own);
    rig.free(*rig.block);

    Engine& engine = rig.engine;
    Pool& pool = engine.pools.open({1, 0}, {});
    const auto recording =
        std::make_shared<Recording>(engine.core.device, engine.core.streams, pool);
    engine.captures.begin(recording, captured);
    rig.sim.beginCapture(captured, CaptureMode::kRelaxed).orThrow();
    recording->begin(captured, rig.sim.captureInfo(captured).orThrow().id);
    REQUIRE(recording->covers(captured));
    Request asked = engine.core.rules.request(50 * kMiB, captured, &pool);
    asked.recording = recording.get();
    asked.recorded_by = recording->numberOf(captured);
    rig.log.clear();
    CHECK_THROWS_AS(engine.captures.allocate(asked), OutOfMemory);
    Steps expected{"events", "tidy", "callbacks", "grows"};
    if (pool.onPages()) expected.push_back("undoes");
    CHECK(rig.log == expected);
    Pins pins = engine.captures.end(*recording);
    rig.sim.destroyGraph(rig.sim.endCapture(captured).orThrow()).orThrow();
    engine.captures.unpin(pins);
    engine.accounting.audit();
  }
}

}  // namespace cistern::test
