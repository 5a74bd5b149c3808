// Streams come and go, and time passes.
#include <utility>

#include "tests/stress/pools/pool_worker.hpp"

namespace cistern::storm {
namespace {

// The driver may give the new stream the handle of an old one.
void replace(Worker& worker) {
  World& world = worker.world;
  const std::size_t index = worker.anySlot();
  Slot& slot = world.slots[index];
  const Use alone = Use::alone(slot.lock);
  if (index == 0 || !alone || slot.untold > 0) return;
  insistVerb([&] { world.allocator.forgetStream(slot.stream); });
  insistVerb([&] { world.pinned.all.forgetStream(slot.stream); });
  mustWork(insist([&] { return world.device.destroyStream(slot.stream); }));
  slot.stream = insist([&] { return world.device.createStream(); }).orThrow();
  ++slot.generation;
  note("  slot {}.{} is stream {}", index, slot.generation, slot.stream.raw);
  world.counts.streams += 1;
}

void wait(Worker& worker) {
  World& world = worker.world;
  Slot& slot = world.slots[worker.anySlot()];
  const Use use = Use::shared(slot.lock);
  if (!use) return;
  const RelaxedCaptureMode relaxed(world.device);
  mustWork(insist([&] { return world.device.synchronizeStream(slot.stream); }));
}

// Another library captures the stream, and the allocator is not told. The rest of the program goes
// on. A second such capture may begin meanwhile, on another stream.
void captureUnannounced(Worker& worker) {
  World& world = worker.world;
  const std::size_t index = worker.anySlot();
  Slot& slot = world.slots[index];
  const Use alone = Use::alone(slot.lock);
  if (index == 0 || !alone || slot.untold > 0) return;
  if (!world.device.beginCapture(slot.stream, CaptureMode::kRelaxed)) return;
  note("  slot {}.{}", index, slot.generation);
  world.counts.unannounced += 1;
  for (std::uint64_t i = worker.random.below(12); i > 0; --i) worker.step();
  // A call that a planned fault fails has ended the capture all the same. Another thread may query
  // the stream in the moment in which its capture begins (docs/streams-and-capture.md).
  const Result<DeviceGraph> graph = world.device.endCapture(slot.stream);
  if (graph) return mustWork(insist([&] { return world.device.destroyGraph(graph.value()); }));
  if (isPlanned(graph.error())) return;
  if (world.config.alone) violation(graph.error().message());
  world.counts.broken += 1;
}

void passTime(Worker& worker) {
  const std::uint64_t times[] = {10'000, 1'000'000, 100'000'000};
  worker.world.device.advanceHost(times[worker.random.below(3)]);
}

constexpr Operation kStreamOperations[] = {
    {"replace a stream", 14, replace},
    {"wait for a stream", 12, wait},
    {"capture a stream unannounced", 6, captureUnannounced},
    {"let time pass", 30, passTime},
};

}  // namespace

std::span<const Operation> streamOperations() { return kStreamOperations; }

}  // namespace cistern::storm
