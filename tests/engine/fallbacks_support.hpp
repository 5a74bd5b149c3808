// What the tests of a miss's steps share: an engine that says which steps it takes.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "allocator/engine/engine.hpp"
#include "allocator/engine/exchange/exchange.hpp"
#include "allocator/engine/paths/slow_path.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/support/interposed_device.hpp"

namespace cistern::test {

/// An engine that says what it does, each when it comes for the first time in a request.
struct StepsRig {
  StepsRig(const std::string& conf, std::uint64_t capacity)
      : sim(simOf(capacity)), engine(device, Options::parse(conf), capacity, putBack) {
    engine.limit.set(2 * capacity);  // it is the device that refuses
    device.before = [this](Call call) { note(call); };
    engine.hooks.reclaim.add(
        [this](const MemoryShortage&) { return note("callbacks"), reclaim && reclaim(); });
    engine.hooks.tidy.set([this](Tidying why) {
      note(why == Tidying::kLastResort ? "pools" : "tidy");
      return false;
    });
    engine.hooks.untidy = 1;
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
    engine.streams.registerStream(made);
    return made;
  }
  Request request(std::uint64_t bytes, Stream of) {
    return engine.rules.request(bytes, of, &engine.default_pool);
  }
  /// A request that the heap's free memory does not serve; what was done for it.
  std::vector<std::string> serve(std::uint64_t bytes, Stream of) {
    const Request asked = request(bytes, of);
    Heap& heap = slow_path::heapFor(engine, asked);
    log.clear();
    try {
      block = &slow_path::fallBack(engine, heap, asked);
    } catch (const OutOfMemory&) {
      note("out of memory");
    }
    cistern::audit(engine);
    return log;
  }
  /// The block is freed while the stream, whose work never ends, uses it.
  void freePending(Block& of, Stream user) {
    sim.launch(user, {"never ends", {}, sim::kNever, nullptr}).orThrow();
    REQUIRE(recordUse(engine, deviceAddress(of), user));
    Heap& heap = *segmentOf(of).heap.load();
    StreamUses uses;
    {
      const MutexLock lock(heap.mutex());
      uses = heap.setPending(of);
    }
    deferFree(engine, of, uses);
  }
  void free(Block& of) {
    Heap& heap = *segmentOf(of).heap.load();
    const MutexLock lock(heap.mutex());
    heap.release(of, engine.now());
  }

  sim::SimDevice sim;
  InterposedDevice device{sim};
  std::vector<std::string> log;
  std::function<bool()> reclaim;
  Block* block = nullptr;
  Engine engine;
};

using Steps = std::vector<std::string>;

}  // namespace cistern::test
