// A program that allocates and frees as programs do, on any runtime: see gpu_names.hpp.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <initializer_list>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/preload/programs/gpu_names.hpp"

namespace {

void loop() {
  for (int i = 0; i < 1000; ++i) EXPECT(gpu::free(allocated(std::size_t(512) << i % 12)) == 0);
  if (!served()) return;
  EXPECT(calls(gpu::kMalloc) < 20);  // prices are taken with a few
  if (gpu::kHasPages) EXPECT(calls("cuMemCreate") > 0);
}

// What is freed while it is in use is given to other streams, which come after that use; and nobody
// waits for it.
void busy(gpu::Stream user, gpu::Stream next) {
  EXPECT(gpu::free(allocated()) == 0);  // the driver's prices are taken here, which waits
  for (int i = 0; i < 20; ++i) {
    const unsigned long long begin = gpu::now();
    Memory const memory = allocated();
    launch(user, memory);
    EXPECT(gpu::free(memory) == 0);
    Memory const again = allocated();
    if (served()) EXPECT(gpu::now() - begin < kMillisecond);
    launch(next, again, kBytes, 1000);
    EXPECT(gpu::free(again) == 0);
    std::swap(user, next);  // or each would come to have memory of its own
  }
  EXPECT(gpu::races() == 0);
}
void busyStreams() { busy(makeStream(kNonBlocking), makeStream(kNonBlocking)); }
void busyBlocking() { busy(makeStream(0), makeStream(0)); }
void busyLegacy() { busy(nullptr, makeStream(kNonBlocking)); }
void busyPerThread() { busy(kOwn, makeStream(kNonBlocking)); }
void busyToPerThread() { busy(makeStream(kNonBlocking), kOwn); }

// So it does for a stream that did not exist yet, and after one that exists no more.
void busyNewAndGone() {
  for (int i = 0; i < 20; ++i) {
    Memory const memory = allocated();
    const gpu::Stream user = makeStream(kNonBlocking);
    launch(user, memory);
    EXPECT(gpu::destroyStream(user) == 0);
    EXPECT(gpu::free(memory) == 0);
    Memory const again = allocated();
    const gpu::Stream next = makeStream(kNonBlocking);
    launch(next, again);
    EXPECT(gpu::free(again) == 0);
    EXPECT(gpu::destroyStream(next) == 0);
  }
  EXPECT(gpu::races() == 0);
}

void streamOrdered() {
  const gpu::Stream streams[] = {makeStream(kNonBlocking), makeStream(0), nullptr, kOwn};
  for (int i = 0; i < 200; ++i) {
    const gpu::Stream own = streams[i % 4];
    const gpu::Stream other = streams[i / 4 % 4];
    Memory memory = nullptr;
    EXPECT(gpu::mallocAsync(&memory, kBytes, own) == 0);
    launch(own, memory);
    if (own != other) EXPECT(gpu::synchronize() == 0);  // else the program itself would race
    EXPECT(gpu::freeAsync(memory, other) == 0);
    Memory const plain = allocated();
    launch(streams[(i + 1) % 4], plain);
    EXPECT(i % 3 == 0 ? gpu::free(plain) == 0 : gpu::freeAsync(plain, streams[(i + 1) % 4]) == 0);
  }
  Memory mine = nullptr;
  EXPECT(gpu::mallocOwn(&mine, kBytes) == 0);
  EXPECT(gpu::freeOwn(mine) == 0);
  EXPECT(gpu::races() == 0);
  if (served()) EXPECT(calls(gpu::kMallocAsync) == 0);
}

void unknownPointers() {
  Memory const memory = allocated();
  EXPECT(gpu::free(memory) == 0);
  EXPECT(gpu::free(memory) == kInvalidValue);  // freed twice
  EXPECT(gpu::free(reinterpret_cast<void*>(0x1234000)) == kInvalidValue);
  Memory const again = allocated();
  for (const int into : {1, 2, 3, 512}) {
    // (HIP itself frees what a pointer lies in.)
    if (served() || gpu::kHasPages) EXPECT(gpu::free(again + into) == kInvalidValue);
  }
  EXPECT(gpu::free(again) == 0);
  EXPECT(gpu::free(nullptr) == 0);
  Memory managed = nullptr;
  EXPECT(gpu::mallocManaged(&managed, kBytes) == 0);
  EXPECT(gpu::free(managed) == 0);
}

void memoryInfo() {
  (void)gpu::free(allocated());
  std::size_t before = 0, total = 0, after = 0;
  EXPECT(gpu::memoryInfo(&before, &total) == 0);
  Memory const memory = allocated(512 << 20);
  EXPECT(gpu::memoryInfo(&after, &total) == 0);
  EXPECT(before - after >= 512u << 20 && before - after < 520u << 20);
  EXPECT(gpu::free(memory) == 0);
  EXPECT(gpu::memoryInfo(&after, &total) == 0);
  EXPECT(after == before);  // what is cached is free
}

void outOfMemory() {
  Memory memory = nullptr;
  EXPECT(gpu::malloc(&memory, std::size_t(1) << 50) == kOutOfMemory);
  EXPECT((gpu::malloc(&memory, 0) == 0) == gpu::kGivesNothing);
  // Again and again all that there is, of other sizes, while what was freed is in use: the device
  // has 80 GiB.
  const gpu::Stream user = makeStream(kNonBlocking);
  for (int i = 0; i < 6; ++i) {
    std::vector<Memory> all;
    for (int k = 0; k < 7; ++k) all.push_back(allocated(std::size_t(10 + i % 2) << 30));
    for (Memory const one : all) launch(user, one, kBytes, 10 * kMillisecond);
    for (Memory const one : all) EXPECT(gpu::free(one) == 0);
  }
  Memory managed = nullptr;  // room for what is the driver's
  EXPECT(gpu::mallocManaged(&managed, std::size_t(70) << 30) == 0);
  EXPECT(gpu::free(managed) == 0);
  EXPECT(gpu::races() == 0);
}

void capture() {
  const gpu::Stream captured = makeStream(kNonBlocking);
  Memory const before = allocated();
  gpu::Graph graph = nullptr;
  // In global mode cudaMalloc is an error, and breaks the capture.
  EXPECT(gpu::beginCapture(captured, kGlobal) == 0);
  Memory memory = nullptr;
  EXPECT(gpu::malloc(&memory, kBytes) == kCaptureUnsupported);
  EXPECT(gpu::endCapture(captured, &graph) == kCaptureInvalidated);
  // So is cudaFree.
  EXPECT(gpu::beginCapture(captured, kGlobal) == 0);
  EXPECT(gpu::free(before) == kCaptureUnsupported);
  EXPECT(gpu::endCapture(captured, &graph) == kCaptureInvalidated);
  // Neither in relaxed mode; and what others free meanwhile is not put into the capture.
  EXPECT(gpu::beginCapture(captured, kRelaxed) == 0);
  EXPECT(gpu::exchangeMode(kRelaxed) == 0);
  memory = allocated();
  launch(captured, memory);
  EXPECT(gpu::free(before) == 0);
  EXPECT(gpu::endCapture(captured, &graph) == 0);
  EXPECT(gpu::free(memory) == 0);
  EXPECT(gpu::free(allocated()) == 0);
  EXPECT(gpu::races() == 0);
}

void captureOfAllocations() {
  const gpu::Stream captured = makeStream(kNonBlocking);
  gpu::Graph graph = nullptr;
  const unsigned long long before = calls(gpu::kMallocAsync);
  EXPECT(gpu::beginCapture(captured, kRelaxed) == 0);
  Memory memory = nullptr;
  (void)gpu::mallocAsync(&memory, kBytes, captured);
  EXPECT(calls(gpu::kMallocAsync) == before + 1);  // the driver makes a node of it
  (void)gpu::endCapture(captured, &graph);
}

void reset() {
  Memory const memory = allocated();
  Memory other = nullptr;
  EXPECT(gpu::mallocAsync(&other, kBytes, makeStream(kNonBlocking)) == 0);
  EXPECT(gpu::reset() == 0);
  std::size_t free_bytes = 0, total = 0;
  EXPECT(gpu::setDevice(0) == 0);
  EXPECT(gpu::memoryInfo(&free_bytes, &total) == 0);
  EXPECT(free_bytes == total);  // all has gone back
  EXPECT(gpu::free(memory) == kInvalidValue);
  EXPECT(gpu::free(allocated()) == 0);
}

void devices() {
  Memory const first = allocated();
  launch(nullptr, first);
  EXPECT(gpu::setDevice(1) == 0);
  Memory const second = allocated();
  launch(nullptr, second);
  EXPECT(gpu::free(first) == 0);  // with another device current
  EXPECT(gpu::setDevice(0) == 0);
  EXPECT(gpu::free(second) == 0);
  for (int i = 0; i < 20; ++i) {
    EXPECT(gpu::setDevice(i % 2) == 0);
    Memory const memory = allocated();
    const gpu::Stream other = makeStream(kNonBlocking);
    launch(i % 3 == 0 ? nullptr : other, memory, kBytes, 1000);
    EXPECT(gpu::free(memory) == 0);
  }
  EXPECT(gpu::races() == 0);
}

void threads() {
  std::atomic<Memory> handed{nullptr};
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t) {
    all.emplace_back([&] {
      const gpu::Stream own = makeStream(kNonBlocking);
      for (int i = 0; i < 300; ++i) {
        Memory memory = nullptr;
        if (i % 2 == 0) {
          memory = allocated();
          launch(own, memory, kBytes, 1000);
          Memory const before = handed.exchange(memory);  // another thread frees it
          if (before != nullptr) EXPECT(gpu::free(before) == 0);
        } else {
          EXPECT(gpu::mallocAsync(&memory, kBytes, own) == 0);
          launch(own, memory, kBytes, 1000);
          EXPECT(gpu::freeAsync(memory, own) == 0);
        }
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT(gpu::free(handed) == 0);
  EXPECT(gpu::races() == 0);
}

// A child has nothing of its parent's device, and leaves it alone; the parent goes on.
void forks() {
  Memory const memory = allocated();
  const pid_t child = fork();
  if (child == 0) std::exit(0);
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  EXPECT(gpu::free(memory) == 0);
  EXPECT(gpu::free(allocated()) == 0);
}

// A child of a process that has not come to CUDA is one like any other.
void forksFirst() {
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 10; ++i) EXPECT(gpu::free(allocated()) == 0);
    std::exit(failures == 0 ? 0 : 1);
  }
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

// As servers do, whose titles say what they are at.
void title() {
  std::memcpy(program_invocation_name, "hidden", 6);
  forksFirst();
}

void crash() {
  for (int i = 0; i < 10; ++i) (void)allocated();
  std::raise(SIGKILL);
}
void exitFromThread() {
  (void)allocated();
  std::thread([] { std::exit(failures == 0 ? 7 : 1); }).join();
}
void quickExit() {
  (void)allocated();
  _exit(failures == 0 ? 8 : 1);
}

// A program that makes itself a daemon closes whatever it has not opened, and has files of its own.
void closesDescriptors() {
  for (int descriptor = 3; descriptor < 64; ++descriptor) (void)close(descriptor);
  std::vector<std::FILE*> files;
  for (int i = 0; i < 8; ++i) files.push_back(std::tmpfile());
  for (int i = 0; i < 10; ++i) EXPECT(gpu::free(allocated()) == 0);
  for (std::FILE* const file : files) {
    EXPECT(std::fseek(file, 0, SEEK_END) == 0 && std::ftell(file) == 0);
    std::fclose(file);
  }
}

// Its environment is the program's own to change.
void clearsEnvironment() {
  (void)clearenv();
  const pid_t child = fork();
  if (child == 0) {
    EXPECT(gpu::free(allocated()) == 0);
    std::exit(failures == 0 ? 0 : 1);
  }
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  std::raise(SIGKILL);
}

// What allocates and frees until the very end of its thread, and of the process.
struct Last {
  Memory memory = nullptr;
  ~Last() {
    if (memory == nullptr) return;
    EXPECT(gpu::free(memory) == 0);
    EXPECT(gpu::free(allocated(4096)) == 0);
    if (failures != 0) _exit(1);
  }
};
Last last_of_process;
void destructors() {
  last_of_process.memory = allocated();
  (void)std::atexit([] { EXPECT(gpu::free(allocated()) == 0); });
  for (int i = 0; i < 20; ++i) {
    std::thread([] {
      static thread_local Last last;
      last.memory = allocated(8192);
    }).join();
  }
}

// Functions that programs are given at run time are served too.
void entryPoints() {
  Memory const before = allocated();
  const unsigned long long asked = calls(gpu::kMalloc);
  Memory memory = nullptr;
  EXPECT(gpu::mallocByEntryPoint(&memory, kBytes) == 0);
  if (served()) EXPECT(calls(gpu::kMalloc) == asked);
  EXPECT(gpu::free(memory) == 0);
  EXPECT(gpu::free(before) == 0);
}

const Case kCases[] = {{"loop", loop},
                       {"busy_streams", busyStreams},
                       {"busy_blocking", busyBlocking},
                       {"busy_legacy", busyLegacy},
                       {"busy_per_thread", busyPerThread},
                       {"busy_to_per_thread", busyToPerThread},
                       {"busy_new_and_gone", busyNewAndGone},
                       {"stream_ordered", streamOrdered},
                       {"unknown_pointers", unknownPointers},
                       {"memory_info", memoryInfo},
                       {"out_of_memory", outOfMemory},
                       {"capture", capture},
                       {"capture_of_allocations", captureOfAllocations},
                       {"reset", reset},
                       {"devices", devices},
                       {"threads", threads},
                       {"forks", forks},
                       {"forks_first", forksFirst},
                       {"title", title},
                       {"crash", crash},
                       {"exit_from_thread", exitFromThread},
                       {"quick_exit", quickExit},
                       {"closes_descriptors", closesDescriptors},
                       {"clears_environment", clearsEnvironment},
                       {"destructors", destructors},
                       {"entry_points", entryPoints}};

}  // namespace

int main(int argc, char** argv) { return runCase(kCases, argc, argv); }
