// A program that needs more than its device has. FAKE_CAPACITY is 256 MiB, or there is such a
// limit, and under `cistern run --overflow` the rest lies in the host's memory.
#include <array>
#include <initializer_list>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/preload/programs/gpu_names.hpp"

namespace {

constexpr std::size_t kMiB = 1 << 20, kBlock = 64 * kMiB;
constexpr std::size_t kBlocks = 6;  // of which the device has room for four
constexpr int kNoHandle = 801;

using Blocks = std::vector<Memory>;

Memory takeOn(gpu::Stream stream, std::size_t bytes = kBlock) {
  Memory memory = nullptr;
  EXPECT(gpu::mallocAsync(&memory, bytes, stream) == 0);
  return memory;
}

// Words at the beginning, across the middle, and at the end.
constexpr std::array<std::size_t, 4> kPlaces = {0, kBlock / 2 - 4, kBlock / 2, kBlock - 4};
unsigned wordAt(std::size_t block, std::size_t place) { return unsigned(block * 100 + place); }

void fill(const Blocks& blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t place = 0; place < kPlaces.size(); ++place) {
      const unsigned word = wordAt(i, place);
      EXPECT(gpu::write(blocks[i] + kPlaces[place], &word, sizeof word) == 0);
    }
  }
}
void look(const Blocks& blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t place = 0; place < kPlaces.size(); ++place) {
      unsigned word = 0;
      EXPECT(gpu::read(&word, blocks[i] + kPlaces[place], sizeof word) == 0);
      EXPECT(word == wordAt(i, place));
    }
  }
}

Blocks taken(std::size_t count = kBlocks) {
  Blocks blocks(count);
  for (Memory& block : blocks) block = allocated(kBlock);
  return blocks;
}
void give(const Blocks& blocks) {
  for (Memory const block : blocks) EXPECT(gpu::free(block) == 0);
}

void use() {
  const Blocks blocks = taken();
  fill(blocks);
  for (Memory const block : blocks) launch(nullptr, block, kBlock);
  EXPECT(gpu::synchronize() == 0);
  look(blocks);
  give(blocks);
  EXPECT(gpu::races() == 0);
}

void beyond() {
  gpu::begin();
  use();
  use();
}

void streamOrdered() {
  gpu::begin();
  const gpu::Stream stream = makeStream(kNonBlocking);
  Blocks blocks(kBlocks);
  for (Memory& block : blocks) block = takeOn(stream);
  EXPECT(gpu::synchronizeStream(stream) == 0);
  fill(blocks);
  look(blocks);
  std::uint64_t used = 0, reserved = 0;
  EXPECT(gpu::getOfPool(gpu::defaultPool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) == 0);
  EXPECT(gpu::getOfPool(gpu::defaultPool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) == 0);
  EXPECT(used == kBlocks * kBlock && reserved >= used);
  for (Memory const block : blocks) {
    launch(stream, block, kBlock);
    EXPECT(gpu::freeAsync(block, stream) == 0);
  }
  EXPECT(gpu::synchronize() == 0);
  EXPECT(gpu::races() == 0);
}

// ---- What the driver is asked about it ----------------------------------------------------------

template <class T>
T ask(CUpointer_attribute what, Memory memory) {
  T answer{};
  EXPECT(cuPointerGetAttribute(&answer, what, gpu::addressOf(memory)) == CUDA_SUCCESS);
  return answer;
}

void askOf(Memory block) {
  Memory const inside = block + kBlock / 2;
  EXPECT(ask<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside) == CU_MEMORYTYPE_DEVICE);
  EXPECT(ask<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside) == 0);
  EXPECT(ask<Memory>(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inside) == inside);
  EXPECT(ask<CUcontext>(CU_POINTER_ATTRIBUTE_CONTEXT, inside) == gpu::thisThread());
  EXPECT(ask<Memory>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside) == block);
  EXPECT(ask<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside) == kBlock);
  void* host = block;
  EXPECT(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, gpu::addressOf(block)) ==
         CUDA_ERROR_INVALID_VALUE);
  unsigned type = 0;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* out[] = {&type, &host};
  EXPECT(cuPointerGetAttributes(2, which, out, gpu::addressOf(inside)) == CUDA_SUCCESS);
  EXPECT(type == CU_MEMORYTYPE_DEVICE && host == nullptr);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  EXPECT(cuMemGetAddressRange(&base, &bytes, gpu::addressOf(inside)) == CUDA_SUCCESS);
  EXPECT(base == gpu::addressOf(block) && bytes == kBlock);
}

int handleOf(Memory block) {
  gpu::IpcHandle handle;
  return gpu::getHandle(&handle, block);
}

void questions() {
  gpu::begin();
  const Blocks blocks = taken();
  for (Memory const block : blocks) askOf(block);
  Memory const near = blocks.front(), far = blocks.back();
  EXPECT(ask<int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, near) == 1);
  EXPECT(ask<int>(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, far) == 0);
  EXPECT(handleOf(near) == 0);
  EXPECT(handleOf(far) == kNoHandle);
  CUmemGenericAllocationHandle page = 0;
  EXPECT(cuMemRetainAllocationHandle(&page, far) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(gpu::free(far + 512) == kInvalidValue);
  give(blocks);
  EXPECT(gpu::free(far) == kInvalidValue);
}

std::size_t freeBytes() {
  std::size_t free_bytes = 0, total = 0;
  EXPECT(gpu::memoryInfo(&free_bytes, &total) == 0);
  EXPECT(free_bytes <= total);
  return free_bytes;
}

// The device's memory alone: what a program fits itself to.
void memoryInfo() {
  gpu::begin();
  const std::size_t all = freeBytes();
  const Blocks blocks = taken();
  const std::size_t none = freeBytes();
  EXPECT(none < kBlock);
  EXPECT(gpu::free(blocks.back()) == 0);
  EXPECT(freeBytes() == none);
  EXPECT(gpu::free(blocks.front()) == 0);
  EXPECT(freeBytes() == none + kBlock);
  give({blocks.begin() + 1, blocks.end() - 1});
  EXPECT(freeBytes() >= all);
}

// ---- What comes before it -----------------------------------------------------------------------

// Another context of the device keeps what it has freed.
void keptByAnother() {
  gpu::begin();
  const gpu::Thread own = gpu::thisThread();
  gpu::takeOver(gpu::makeContext());
  give(taken(3));
  gpu::takeOver(own);
  give(taken(3));
}

// Work uses what was freed.
void usedByWork() {
  gpu::begin();
  for (int i = 0; i < 8; ++i) {
    const Blocks blocks = taken(3);
    for (Memory const block : blocks) launch(nullptr, block, kBlock);
    give(blocks);
  }
  EXPECT(gpu::synchronize() == 0);
  EXPECT(gpu::races() == 0);
}

// In another context of the device, a thread's growth is refused while this one has its turn. The
// device has room for both.
void managedBeside() {
  gpu::begin();
  const gpu::Thread own = gpu::thisThread();
  static const gpu::Thread context = gpu::makeContext();
  static std::thread other;
  gpu::takeOver(context);
  EXPECT(gpu::free(allocated()) == 0);
  gpu::takeOver(own);
  give(taken(2));
  gpu::during(gpu::kGiveBack, [] {
    other = std::thread([] {
      gpu::takeOver(context);
      EXPECT(gpu::free(allocated(32 * kMiB)) == 0);
    });
    usleep(200'000);
  });
  Memory managed = nullptr;
  EXPECT(gpu::mallocManaged(&managed, 160 * kMiB) == 0);
  if (EXPECT(other.joinable())) other.join();
}

// ---- With other things --------------------------------------------------------------------------

void tooMuch() {
  gpu::begin();
  Blocks blocks;
  Memory memory = nullptr;
  int result = 0;
  while (blocks.size() < 64 && (result = gpu::malloc(&memory, kBlock)) == 0)
    blocks.push_back(memory);
  EXPECT(result == kOutOfMemory);
  EXPECT(blocks.size() >= number("LEAST") && blocks.size() <= number("MOST"));
  fill(blocks);
  look(blocks);
  give(blocks);
}

void inAGraph() {
  gpu::begin();
  const Blocks blocks = taken();
  const gpu::Stream stream = makeStream(kNonBlocking), beside = makeStream(kNonBlocking);
  fill(blocks);
  EXPECT(gpu::beginCapture(stream, kGlobal) == 0);
  for (Memory const block : blocks) launch(stream, block, kBlock);
  const Memory more = takeOn(beside);
  gpu::Graph graph{};
  EXPECT(gpu::endCapture(stream, &graph) == 0);
  for (int i = 0; i < 3; ++i) EXPECT(gpu::launchGraph(graph, stream) == 0);
  launch(beside, more, kBlock);
  EXPECT(gpu::synchronize() == 0);
  look(blocks);
  give(blocks);
  EXPECT(gpu::free(more) == 0);
  EXPECT(gpu::races() == 0);
}

void twoDevices() {
  gpu::begin();
  const gpu::Thread own = gpu::thisThread();
  const Blocks here = taken();
  gpu::takeOver(gpu::otherDevice());
  const Blocks there = taken();
  EXPECT(ask<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there.back()) == 1);
  give(there);
  gpu::takeOver(own);
  give(here);
  use();
}

void threads() {
  gpu::begin();
  static const gpu::Thread context = gpu::thisThread();
  std::vector<std::thread> all;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    all.emplace_back([seed] {
      gpu::takeOver(context);
      unsigned random = seed;
      for (int i = 0; i < 60; ++i) {
        random = random * 1'103'515'245 + 12'345;
        Memory const block = allocated((1 + random / 65'536 % 160) * kMiB);
        launch(nullptr, block, kMiB, 1000);
        EXPECT(gpu::free(block) == 0);
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT(gpu::synchronize() == 0);
  EXPECT(gpu::races() == 0);
}

// Before the parent has a context.
void children() {
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      beyond();
      std::exit(failures == 0 ? 0 : 1);
    }
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
  }
}

// What is there when the context goes, goes too.
void reset() {
  gpu::begin();
  (void)taken();
  EXPECT(gpu::reset() == 0);
  gpu::begin();
  use();
}

const Case kCases[] = {{"beyond", beyond},
                       {"stream_ordered", streamOrdered},
                       {"questions", questions},
                       {"memory_info", memoryInfo},
                       {"kept_by_another", keptByAnother},
                       {"used_by_work", usedByWork},
                       {"managed_beside", managedBeside},
                       {"too_much", tooMuch},
                       {"in_a_graph", inAGraph},
                       {"two_devices", twoDevices},
                       {"threads", threads},
                       {"children", children},
                       {"reset", reset}};

}  // namespace

int main(int argc, char** argv) { return runCase(kCases, argc, argv); }
