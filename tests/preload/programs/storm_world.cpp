#include "tests/preload/programs/storm_world.hpp"

#include <algorithm>
#include <mutex>

#include <unistd.h>

namespace storm {
namespace {

std::size_t granules(std::size_t bytes) { return (bytes + kGranule - 1) / kGranule * kGranule; }

}  // namespace

void fault(const char* what) {
  std::size_t free_bytes = 0, total = 0;
  (void)gpu::memoryInfo(&free_bytes, &total);
  std::printf(
      "seed %u: fault after %llu steps: %s (%zu of %zu MiB are free, %zu and %zu MiB held)\n", seed,
      steps.load(), what, free_bytes / kMiB, total / kMiB, held[0] / kMiB, held[1] / kMiB);
  std::fflush(nullptr);
  _exit(1);
}

Worker::Worker(const std::vector<gpu::Thread>& contexts, unsigned random_seed)
    : random_(random_seed), contexts_(contexts), streams_(contexts.size()) {
  for (std::size_t context = 0; context < contexts.size(); ++context) {
    enter(context);
    streams_[context] = {nullptr, makeStream(unsigned(below(2))), makeStream(kNonBlocking)};
  }
}

void Worker::run(int most) {
  for (int i = 0; i < most; ++i) {
    step();
    ++steps;
  }
  releaseAll();
  for (std::size_t context = 0; context < contexts_.size(); ++context) {
    enter(context);
    for (std::size_t i = 1; i < streams_[context].size(); ++i)
      expect(gpu::destroyStream(streams_[context][i]) == 0, "a stream cannot be destroyed");
  }
}

void Worker::step() {
  const std::size_t what = below(100);
  if (what < 45 || blocks_.empty()) return allocate();
  if (what < 60) return use(blocks_[below(blocks_.size())]);
  if (what < 85) return release(below(blocks_.size()));
  if (what < 88) return releaseAll();
  if (what < 92) return enter(below(contexts_.size()));
  if (what < 94) return askForTooMuch();
  if (what < 96) return renewStream();
  if (what < 97) return changePool();
  wait();
}

void Worker::enter(std::size_t context) {
  gpu::takeOver(contexts_[context]);
  in_ = context;
}

// What others hold, or are asking for, is theirs.
bool Worker::take(std::size_t bytes) {
  std::atomic<std::size_t>& all = held[gpu::deviceOf(contexts_[in_])];
  if (all.fetch_add(granules(bytes)) + granules(bytes) <= kMost) return true;
  all -= granules(bytes);
  return false;
}

std::size_t Worker::anySize() {
  if (evenSizes()) return 20 * kMiB;
  return below(3) == 0 ? 512 + below(2 * kMiB) : (1 + below(40)) * kMiB;
}

void Worker::allocate() {
  Block block;
  block.context = in_;
  block.bytes = anySize();
  block.stream = streams_[in_][below(3)];
  if (!take(block.bytes)) return releaseAll();
  int result = 0;
  const char* refused = "cudaMalloc is refused, and there is room";
  switch (plain() ? 2 : below(6)) {
    case 0:
      refused = "managed memory is refused, and there is room";
      result = allocateOfDriver(block);
      break;
    case 1:
      block.async = true;
      if (below(2) == 0) {
        refused = "the program's own pool is refused, and there is room";
        result = allocateOfDriver(block);
        break;
      }
      refused = "cudaMallocAsync is refused, and there is room";
      result = allocateOfAnyPool(block);
      break;
    default:
      result = gpu::malloc(&block.memory, block.bytes);
  }
  if (result == kOutOfMemory) fault(refused);
  expect(result == 0, "a request fails");
  blocks_.push_back(block);
}

int Worker::allocateOfDriver(Block& block) {
  const std::shared_lock shared(driver_room);
  block.of_driver = true;
  return block.async ? gpu::mallocFrom(&block.memory, block.bytes, gpu::ownPool(contexts_[in_]),
                                       block.stream)
                     : gpu::mallocManaged(&block.memory, block.bytes);
}

// The driver serves it while a pool of the program's is the device's (changePool).
int Worker::allocateOfAnyPool(Block& block) {
  const std::shared_lock shared(driver_room);
  return gpu::mallocAsync(&block.memory, block.bytes, block.stream);
}

// Some of the device is always held.
void Worker::askForTooMuch() {
  const std::size_t bytes = kCapacity - kHeld + (1 + below(64)) * kMiB;
  if (gpu::deviceOf(contexts_[in_]) != 0) return;
  const std::unique_lock alone(driver_room);
  Memory memory = nullptr;
  const bool managed = !plain() && below(2) == 0;
  const int result = managed ? gpu::mallocManaged(&memory, bytes) : gpu::malloc(&memory, bytes);
  if (result == 0 && !managed && overflows()) return useOnce(memory, bytes);
  expect(result == kOutOfMemory, "a request that cannot be served is not refused");
}

// A part of it lies in the host's memory.
void Worker::useOnce(Memory memory, std::size_t bytes) {
  const gpu::Stream stream = streams_[in_][below(3)];
  expect(gpu::launch(stream, memory, bytes, kMillisecond) == 0, "work is refused");
  expect(gpu::free(memory) == 0, "a block cannot be freed");
}

void Worker::use(const Block& block) {
  if (block.of_driver || block.context != in_) return;
  const unsigned long long time = below(2) == 0 ? 1000 : kMillisecond;
  const int result = below(3) == 0 ? gpu::set(block.stream, block.memory, block.bytes)
                                   : gpu::launch(block.stream, block.memory, block.bytes, time);
  expect(result == 0, "work is refused");
}

// cudaFree takes it from any context; a stream is its own context's.
void Worker::release(std::size_t which) {
  const Block block = blocks_[which];
  blocks_[which] = blocks_.back();
  blocks_.pop_back();
  const bool in_order = block.async && block.context == in_ && below(2) == 0;
  const int result =
      in_order ? gpu::freeAsync(block.memory, block.stream) : gpu::free(block.memory);
  expect(result == 0, "a block cannot be freed");
  held[gpu::deviceOf(contexts_[block.context])] -= granules(block.bytes);
}

void Worker::releaseAll() {
  while (!blocks_.empty()) release(blocks_.size() - 1);
}

// No block's that is to be used on it, or freed.
void Worker::renewStream() {
  gpu::Stream& stream = streams_[in_][1 + below(2)];
  const bool is_used = std::any_of(blocks_.begin(), blocks_.end(),
                                   [&](const Block& block) { return block.stream == stream; });
  if (is_used) return;
  expect(gpu::destroyStream(stream) == 0, "a stream cannot be destroyed");
  stream = makeStream(unsigned(below(2)));
}

void Worker::changePool() {
  if (plain()) return;
  if (gpu::deviceOf(contexts_[in_]) != 0) return;
  const gpu::Pool pool = below(3) == 0 ? gpu::makePool() : gpu::defaultPool();
  expect(gpu::setPool(pool) == 0, "a pool cannot be set");
  if (below(2) == 0 && pool != gpu::defaultPool())
    expect(gpu::destroyPool(pool) == 0, "a pool cannot be destroyed");
}

void Worker::wait() {
  const int result =
      below(2) == 0 ? gpu::synchronize() : gpu::synchronizeStream(streams_[in_][below(3)]);
  expect(result == 0, "a wait fails");
}

}  // namespace storm
