// What the default pool of a device says of itself. A program finds the same whether the driver or
// Cistern has the memory.
#include <initializer_list>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/preload/programs/gpu_names.hpp"

namespace {

// Attributes, as both vendors number them.
constexpr int kFollowEvents = 1, kThreshold = 4;
constexpr int kReserved = 5, kReservedHigh = 6, kUsed = 7, kUsedHigh = 8;
constexpr std::size_t kUnit = 512, kMiB = 1 << 20;

std::uint64_t get(int attribute, gpu::Pool pool = gpu::defaultPool()) {
  std::uint64_t value = 0;
  EXPECT(gpu::getOfPool(pool, attribute, &value) == 0);
  return value;
}
int set(int attribute, std::uint64_t value, gpu::Pool pool = gpu::defaultPool()) {
  return gpu::setOfPool(pool, attribute, &value);
}
std::uint64_t freeBytes() { return get(kReserved) - get(kUsed); }

Memory take(std::size_t bytes, gpu::Stream stream = nullptr) {
  Memory memory = nullptr;
  EXPECT(gpu::mallocAsync(&memory, bytes, stream) == 0);
  return memory;
}
void give(Memory memory, gpu::Stream stream = nullptr) {
  EXPECT(gpu::freeAsync(memory, stream) == 0);
}
void freeAll() {
  EXPECT(gpu::synchronize() == 0);
  EXPECT(gpu::trimPool(gpu::defaultPool(), 0) == 0);
}
void expectOrder() {
  EXPECT(get(kUsed) <= get(kReserved));
  EXPECT(get(kUsed) <= get(kUsedHigh));
  EXPECT(get(kReserved) <= get(kReservedHigh));
}

// The sequences of CuPy's tests of its MemoryAsyncPool.
void used() {
  gpu::begin();
  const std::uint64_t before = get(kUsed);
  const Memory first = take(2 * kUnit);
  EXPECT(get(kUsed) == before + 2 * kUnit);
  const Memory second = take(4 * kUnit);
  EXPECT(get(kUsed) == before + 6 * kUnit);
  give(second);
  EXPECT(get(kUsed) == before + 2 * kUnit);
  give(first);
  EXPECT(get(kUsed) == before);
  const gpu::Stream stream = makeStream(kNonBlocking);
  for (const gpu::Stream each : {stream, kOwn}) {
    const Memory third = take(kUnit, each);
    EXPECT(get(kUsed) == before + kUnit);
    expectOrder();
    give(third, each);
    EXPECT(get(kUsed) == before);
  }
  // A free of the other kind is one too.
  const Memory fourth = take(kMiB);
  EXPECT(gpu::free(fourth) == 0);
  EXPECT(get(kUsed) == before);
}

void reserved() {
  gpu::begin();
  freeAll();
  const std::uint64_t before = get(kReserved);
  Memory first = take(2 * kUnit);
  const std::uint64_t size = get(kReserved);
  EXPECT(size > before);
  std::uint64_t free = freeBytes();
  Memory second = take(4 * kUnit);
  EXPECT(freeBytes() == free - 4 * kUnit);
  give(second);
  EXPECT(freeBytes() == free);
  give(first);
  EXPECT(freeBytes() == free + 2 * kUnit);
  EXPECT(get(kReserved) == size);
  freeAll();
  EXPECT(get(kReserved) == before);
  first = take(kUnit);
  EXPECT(get(kReserved) == size);
  give(first);
  freeAll();
  EXPECT(get(kReserved) == before);
}

// cudaMalloc's memory is not the pool's, whether it is in use, cached, or taken from what is
// cached.
void otherMemory() {
  gpu::begin();
  Memory memory = allocated(64 * kMiB);
  EXPECT(get(kReserved) == 0 && get(kUsed) == 0);
  EXPECT(gpu::free(memory) == 0);
  EXPECT(get(kReserved) == 0);
  memory = take(kMiB);
  EXPECT(get(kReserved) >= kMiB && get(kReserved) <= 64 * kMiB);
  expectOrder();
  give(memory);
}

void peaks() {
  gpu::begin();
  const Memory first = take(8 * kMiB), second = take(100 * kMiB);
  const std::uint64_t high = get(kReservedHigh);
  EXPECT(get(kUsedHigh) == 108 * kMiB && high >= 108 * kMiB);
  give(second);
  freeAll();
  EXPECT(get(kUsedHigh) == 108 * kMiB && get(kReservedHigh) == high);
  EXPECT(get(kReserved) < 100 * kMiB);
  expectOrder();
  EXPECT(set(kUsedHigh, 0) == 0);
  EXPECT(get(kUsedHigh) == 8 * kMiB && get(kReservedHigh) == high);
  EXPECT(set(kReservedHigh, 0) == 0);
  EXPECT(get(kReservedHigh) == get(kReserved));
  expectOrder();
  give(first);
}

void trims() {
  gpu::begin();
  constexpr std::size_t kBlocks = 8, kBlock = 32 * kMiB;
  Memory blocks[kBlocks];
  for (Memory& block : blocks) block = take(kBlock);
  const std::uint64_t all = get(kReserved);
  EXPECT(all >= kBlocks * kBlock);
  EXPECT(gpu::trimPool(gpu::defaultPool(), 0) == 0);  // all are in use
  EXPECT(get(kReserved) == all);
  for (std::size_t i = 1; i < kBlocks; ++i) give(blocks[i]);
  EXPECT(gpu::synchronize() == 0);
  EXPECT(gpu::trimPool(gpu::defaultPool(), all) == 0);
  EXPECT(get(kReserved) == all);
  EXPECT(gpu::trimPool(gpu::defaultPool(), 4 * kBlock) == 0);
  EXPECT(get(kReserved) <= 4 * kBlock && get(kReserved) > 2 * kBlock);
  freeAll();
  EXPECT(get(kReserved) >= kBlock && get(kReserved) < 2 * kBlock);
  give(blocks[0]);
  freeAll();
  EXPECT(get(kReserved) == 0);
}

void wrongValues() {
  gpu::begin();
  const Memory memory = take(kMiB);
  const std::uint64_t reserved = get(kReserved), used_high = get(kUsedHigh);
  for (const int attribute : {kReserved, kReservedHigh, kUsed, kUsedHigh})
    EXPECT(set(attribute, 1) == kInvalidValue);
  for (const int attribute : {kReserved, kUsed}) EXPECT(set(attribute, 0) == kInvalidValue);
  std::uint64_t value = 17;
  EXPECT(gpu::getOfPool(gpu::defaultPool(), 99, &value) == kInvalidValue && value == 17);
  EXPECT(gpu::getOfPool(gpu::defaultPool(), kUsed, nullptr) == kInvalidValue);
  EXPECT(gpu::getOfPool(nullptr, kUsed, &value) == kInvalidValue && value == 17);
  EXPECT(gpu::setOfPool(nullptr, kUsedHigh, &value) == kInvalidValue);
  EXPECT(gpu::trimPool(nullptr, 0) == kInvalidValue);
  EXPECT(get(kReserved) == reserved && get(kUsedHigh) == used_high && get(kUsed) == kMiB);
  give(memory);
}

// These the driver keeps.
void settings() {
  gpu::begin();
  EXPECT(set(kThreshold, UINT64_MAX) == 0 && get(kThreshold) == UINT64_MAX);
  int off = 0, value = 1;
  EXPECT(gpu::setOfPool(gpu::defaultPool(), kFollowEvents, &off) == 0);
  EXPECT(gpu::getOfPool(gpu::defaultPool(), kFollowEvents, &value) == 0 && value == 0);
  give(take(kUnit));
}

void otherDevice() {
  gpu::begin();
  const auto here = gpu::thisThread();
  const Memory first = take(3 * kMiB);
  gpu::takeOver(gpu::otherDevice());
  const Memory second = take(5 * kMiB);
  give(take(40 * kMiB));
  EXPECT(gpu::synchronize() == 0);
  gpu::takeOver(here);
  const gpu::Pool other = gpu::defaultPool(1);
  EXPECT(get(kUsed) == 3 * kMiB && get(kUsed, other) == 5 * kMiB);
  EXPECT(get(kUsedHigh, other) == 45 * kMiB && get(kReserved, other) >= 45 * kMiB);
  const std::uint64_t reserved = get(kReserved);
  EXPECT(gpu::trimPool(other, 0) == 0 && set(kUsedHigh, 0, other) == 0);
  EXPECT(get(kReserved, other) < 45 * kMiB && get(kUsedHigh, other) == 5 * kMiB);
  EXPECT(get(kReserved) == reserved && get(kUsedHigh) == 3 * kMiB);
  give(first);
  gpu::takeOver(gpu::otherDevice());
  give(second);
}

// A pool that the program makes, and the default one when it is used by another device: the driver
// has the new memory, and Cistern still what was allocated before.
void ofTwo() {
  gpu::begin();
  const gpu::Pool mine = gpu::makePool();
  Memory own = nullptr, later = nullptr;
  EXPECT(gpu::mallocFrom(&own, kMiB, mine, nullptr) == 0);
  EXPECT(get(kUsed) == 0 && get(kUsed, mine) == kMiB);
  const Memory first = take(kMiB);
  EXPECT(gpu::letDeviceUse(gpu::defaultPool(), 1) == 0);
  EXPECT(gpu::mallocFrom(&later, 2 * kMiB, gpu::defaultPool(), nullptr) == 0);
  EXPECT(get(kUsed) == 3 * kMiB);
  expectOrder();
  for (const Memory memory : {own, first, later}) give(memory);
  EXPECT(get(kUsed) == 0 && get(kUsed, mine) == 0);
}

// A child has none of its parent's memory: what it calls is the driver's to answer.
void child() {
  gpu::begin();
  give(take(64 * kMiB));
  const std::uint64_t reserved = get(kReserved);
  const pid_t forked = fork();
  if (forked == 0) {
    (void)gpu::trimPool(gpu::defaultPool(), 0);
    (void)set(kReservedHigh, 0);
    std::_Exit(set(kReserved, 0) == kInvalidValue ? 0 : 1);
  }
  int status = -1;
  EXPECT(waitpid(forked, &status, 0) == forked && status == 0);
  EXPECT(get(kReserved) == reserved && get(kReservedHigh) == reserved);
}

const Case kCases[] = {{"used", used},
                       {"reserved", reserved},
                       {"other_memory", otherMemory},
                       {"peaks", peaks},
                       {"trims", trims},
                       {"wrong_values", wrongValues},
                       {"settings", settings},
                       {"other_device", otherDevice},
                       {"of_two", ofTwo},
                       {"child", child}};

}  // namespace

int main(int argc, char** argv) { return runCase(kCases, argc, argv); }
