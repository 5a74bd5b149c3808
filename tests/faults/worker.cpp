#include "tests/faults/worker.hpp"

#include <algorithm>

namespace cistern::test {
namespace {

sim::SimConfig deviceOf(std::uint64_t capacity) {
  sim::SimConfig config = simOf(capacity, 100'000);
  config.host_page_capacity = FaultRig::kHostCapacity;
  config.reuse_streams = true;
  return config;
}

}  // namespace

// ---- The rig -----------------------------------------------------------------------------------

FaultRig::FaultRig(std::string_view conf)
    : device(deviceOf(kCapacity)),
      allocator(device, Options::parse(std::string(conf) + ",background_thread:false")),
      pools(allocator) {}

void FaultRig::checkAtRest() {
  allocator.audit();
  const Stream stream = sim().createStream().orThrow();
  CHECK(allocator.poolFor(stream) == MempoolId_t{});
  sim().synchronizeDevice().orThrow();
  allocator.emptyCache();  // a capture does not
  checkThatCapturesWork(stream);
  sim().synchronizeDevice().orThrow();
  allocator.free(allocator.allocate(kCapacity - 16 * kMiB, stream));
  sim().synchronizeDevice().orThrow();
  allocator.emptyCache();
  allocator.emptyCache();
  const MemoryStats stats = allocator.memoryStats();
  for (const Stat stat : {Stat::kAllocation, Stat::kActive, Stat::kAllocatedBytes,
                          Stat::kActiveBytes, Stat::kReservedBytes, Stat::kRequestedBytes})
    CHECK(stats[stat].current == 0);
  CHECK(takenOf(sim()) == 0);
  CHECK((stats.host_page_bytes == 0 && sim().hostPageBytesLeft() == kHostCapacity));
  allocator.audit();
  for (const sim::RaceReport& race : sim().races()) UNSCOPED_INFO(race.text);
  CHECK(sim().races().empty());
  CHECK(sim().callsOnDeadStreams() == 0);
}

void FaultRig::checkThatCapturesWork(Stream stream) {
  Graph graph(pools);
  {
    GraphCapture capture(graph, stream, {}, CaptureMode::kRelaxed);
    CHECK(allocator.poolFor(stream) == graph.pool());
    allocator.free(allocator.allocate(5 * kMiB, stream));
    capture.end();
  }
  CHECK(allocator.poolFor(stream) == MempoolId_t{});
  graph.replay(stream);
}

// ---- A thread ----------------------------------------------------------------------------------

Worker::Worker(FaultRig& rig, Refusal refusal)
    : s(rig.sim().createStream().orThrow()),
      t(rig.sim().createStream().orThrow()),
      u(rig.sim().createStream().orThrow()),
      rig_(rig),
      refusal_(refusal) {}

Worker::~Worker() {
  for (void* block : held_) rig_.allocator.free(block);
}

void Worker::touch(void* block, std::size_t bytes, Stream stream) {
  const sim::Access access{toAddress(block), bytes, sim::AccessKind::kWrite};
  (void)sim().launch(stream, {"work", {access}, 2'000, nullptr});
}

void* Worker::allocate(std::size_t bytes, Stream stream) {
  void* block = nullptr;
  tries([&] { block = rig_.allocator.allocate(bytes, stream); });
  if (block == nullptr) return nullptr;
  held_.push_back(block);
  touch(block, bytes, stream);
  return block;
}

void Worker::free(void* block) {
  if (block == nullptr) return;
  std::erase(held_, block);
  tries([&] { rig_.allocator.free(block); });
}

void Worker::freeAll() {
  while (!held_.empty()) free(held_.back());
}

bool Worker::use(void* block, Stream stream) {
  if (block == nullptr) return false;
  if (!tries([&] { rig_.allocator.recordStream(block, stream); })) return false;
  touch(block, 512, stream);
  return true;
}

bool Worker::join(Stream later, Stream earlier) {
  const Result<Event> event = sim().createEvent();
  if (!event) return false;
  const bool joined =
      sim().recordEvent(event.value(), earlier).ok() && sim().waitEvent(later, event.value()).ok();
  (void)sim().destroyEvent(event.value());
  return joined;
}

void Worker::replaceHeld(const CheckpointDelta& delta) {
  for (void* block : delta.freed) std::erase(held_, block);
  held_.insert(held_.end(), delta.made.begin(), delta.made.end());
}

}  // namespace cistern::test
