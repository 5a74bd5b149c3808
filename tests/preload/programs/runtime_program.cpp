// A program on the runtime; built once with the archive and once with the shared library. SERVED in
// the environment says that it runs under `cistern run`: some of what it expects is so only there,
// the rest in both.
#include <atomic>
#include <csignal>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/preload/fake_driver/fake_driver.hpp"
#include "tests/preload/fake_runtime/fake_runtime.hpp"
#include "tests/preload/programs/expect.hpp"

namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr unsigned kNonBlocking = 1;
constexpr unsigned long long kMillisecond = 1'000'000;

bool served() { return std::getenv("SERVED") != nullptr; }
unsigned long long calls(const char* name) {
  return driverFunction<decltype(cuFakeCalls)>("cuFakeCalls")(name);
}
unsigned races() { return driverFunction<decltype(cuFakeRaces)>("cuFakeRaces")(); }
void launch(fakeStream_t stream, void* memory, unsigned long long nanoseconds = kMillisecond) {
  const auto queue = driverFunction<decltype(cuFakeLaunch)>("cuFakeLaunch");
  EXPECT(queue(stream, "work", CUdeviceptr(memory), kBytes, 1, nanoseconds) == CUDA_SUCCESS);
}
unsigned long long now() { return driverFunction<decltype(cuFakeNow)>("cuFakeNow")(); }

void* allocated(std::size_t bytes = kBytes) {
  void* memory = nullptr;
  EXPECT(cudaMalloc(&memory, bytes) == 0);
  EXPECT(memory != nullptr);
  return memory;
}
fakeStream_t stream(unsigned flags) {
  fakeStream_t made = nullptr;
  EXPECT(cudaStreamCreateWithFlags(&made, flags) == 0);
  return made;
}

void loop() {
  for (int i = 0; i < 1000; ++i) EXPECT(cudaFree(allocated(std::size_t(512) << i % 12)) == 0);
  if (!served()) return;
  EXPECT(calls("cuMemAlloc") < 20);  // prices are taken with a few
  EXPECT(calls("cuMemCreate") > 0);
}

// What is freed while it is in use is given to other streams, which come after that use; and nobody
// waits for it.
void busy(fakeStream_t user, fakeStream_t next) {
  EXPECT(cudaFree(allocated()) == 0);  // the driver's prices are taken here, which waits
  for (int i = 0; i < 20; ++i) {
    const unsigned long long begin = now();
    void* const memory = allocated();
    launch(user, memory);
    EXPECT(cudaFree(memory) == 0);
    void* const again = allocated();
    if (served()) EXPECT(now() - begin < kMillisecond);
    launch(next, again, 1000);
    EXPECT(cudaFree(again) == 0);
    std::swap(user, next);  // or each would come to have memory of its own
  }
  EXPECT(races() == 0);
}
void busyStreams() { busy(stream(kNonBlocking), stream(kNonBlocking)); }
void busyBlocking() { busy(stream(0), stream(0)); }
void busyLegacy() { busy(nullptr, stream(kNonBlocking)); }
void busyPerThread() { busy(CU_STREAM_PER_THREAD, stream(kNonBlocking)); }
void busyToPerThread() { busy(stream(kNonBlocking), CU_STREAM_PER_THREAD); }

// So it does for a stream that did not exist yet, and after one that exists no more.
void busyNewAndGone() {
  for (int i = 0; i < 20; ++i) {
    void* const memory = allocated();
    const fakeStream_t user = stream(kNonBlocking);
    launch(user, memory);
    EXPECT(cudaStreamDestroy(user) == 0);
    EXPECT(cudaFree(memory) == 0);
    void* const again = allocated();
    const fakeStream_t next = stream(kNonBlocking);
    launch(next, again);
    EXPECT(cudaFree(again) == 0);
    EXPECT(cudaStreamDestroy(next) == 0);
  }
  EXPECT(races() == 0);
}

void streamOrdered() {
  const fakeStream_t streams[] = {stream(kNonBlocking), stream(0), nullptr, CU_STREAM_PER_THREAD};
  for (int i = 0; i < 200; ++i) {
    const fakeStream_t own = streams[i % 4];
    const fakeStream_t other = streams[i / 4 % 4];
    void* memory = nullptr;
    EXPECT(cudaMallocAsync(&memory, kBytes, own) == 0);
    launch(own, memory);
    if (own != other) EXPECT(cudaDeviceSynchronize() == 0);  // else the program itself would race
    EXPECT(cudaFreeAsync(memory, other) == 0);
    void* const plain = allocated();
    launch(streams[(i + 1) % 4], plain);
    EXPECT(i % 3 == 0 ? cudaFree(plain) == 0 : cudaFreeAsync(plain, streams[(i + 1) % 4]) == 0);
  }
  void* mine = nullptr;
  EXPECT(cudaMallocAsync_ptsz(&mine, kBytes, nullptr) == 0);
  EXPECT(cudaFreeAsync_ptsz(mine, nullptr) == 0);
  EXPECT(races() == 0);
  if (served()) EXPECT(calls("cuMemAllocAsync") + calls("cuMemAllocAsync_ptsz") == 0);
}

void unknownPointers() {
  void* const memory = allocated();
  EXPECT(cudaFree(memory) == 0);
  EXPECT(cudaFree(memory) == CUDA_ERROR_INVALID_VALUE);  // freed twice
  EXPECT(cudaFree(reinterpret_cast<void*>(0x1234000)) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cudaFree(nullptr) == 0);
  void* managed = nullptr;
  EXPECT(cudaMallocManaged(&managed, kBytes, 1) == 0);
  EXPECT(cudaFree(managed) == 0);
}

void memoryInfo() {
  (void)cudaFree(allocated());
  std::size_t before = 0, total = 0, after = 0;
  EXPECT(cudaMemGetInfo(&before, &total) == 0);
  void* const memory = allocated(512 << 20);
  EXPECT(cudaMemGetInfo(&after, &total) == 0);
  EXPECT(before - after >= 512u << 20 && before - after < 520u << 20);
  EXPECT(cudaFree(memory) == 0);
  EXPECT(cudaMemGetInfo(&after, &total) == 0);
  EXPECT(after == before);  // what is cached is free
}

void outOfMemory() {
  void* memory = nullptr;
  EXPECT(cudaMalloc(&memory, std::size_t(1) << 50) == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(cudaMalloc(&memory, 0) != 0);
  // Again and again all that there is, of other sizes, while what was freed is in use: the device
  // has 80 GiB.
  const fakeStream_t user = stream(kNonBlocking);
  for (int i = 0; i < 6; ++i) {
    std::vector<void*> all;
    for (int k = 0; k < 7; ++k) all.push_back(allocated(std::size_t(10 + i % 2) << 30));
    for (void* const one : all) launch(user, one, 10 * kMillisecond);
    for (void* const one : all) EXPECT(cudaFree(one) == 0);
  }
  void* managed = nullptr;  // room for what is the driver's
  EXPECT(cudaMallocManaged(&managed, std::size_t(70) << 30, 1) == 0);
  EXPECT(cudaFree(managed) == 0);
  EXPECT(races() == 0);
}

void capture() {
  const fakeStream_t captured = stream(kNonBlocking);
  void* const before = allocated();
  void* graph = nullptr;
  // In global mode cudaMalloc is an error, and breaks the capture.
  EXPECT(cudaStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL) == 0);
  void* memory = nullptr;
  EXPECT(cudaMalloc(&memory, kBytes) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT(cudaStreamEndCapture(captured, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  // So is cudaFree.
  EXPECT(cudaStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL) == 0);
  EXPECT(cudaFree(before) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT(cudaStreamEndCapture(captured, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  // Neither in relaxed mode; and what others free meanwhile is not put into the capture.
  EXPECT(cudaStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED) == 0);
  int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  EXPECT(cudaThreadExchangeStreamCaptureMode(&mode) == 0);
  memory = allocated();
  launch(captured, memory);
  EXPECT(cudaFree(before) == 0);
  EXPECT(cudaStreamEndCapture(captured, &graph) == 0);
  EXPECT(cudaFree(memory) == 0);
  EXPECT(cudaFree(allocated()) == 0);
  EXPECT(races() == 0);
}

void captureOfAllocations() {
  const fakeStream_t captured = stream(kNonBlocking);
  void* graph = nullptr;
  const unsigned long long before = calls("cuMemAllocAsync");
  EXPECT(cudaStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED) == 0);
  void* memory = nullptr;
  (void)cudaMallocAsync(&memory, kBytes, captured);
  EXPECT(calls("cuMemAllocAsync") == before + 1);  // the driver makes a node of it
  (void)cudaStreamEndCapture(captured, &graph);
}

void reset() {
  void* const memory = allocated();
  void* other = nullptr;
  EXPECT(cudaMallocAsync(&other, kBytes, stream(kNonBlocking)) == 0);
  EXPECT(cudaDeviceReset() == 0);
  std::size_t free_bytes = 0, total = 0;
  EXPECT(cudaSetDevice(0) == 0);
  EXPECT(cudaMemGetInfo(&free_bytes, &total) == 0);
  EXPECT(free_bytes == total);  // all has gone back
  EXPECT(cudaFree(memory) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(cudaFree(allocated()) == 0);
}

void devices() {
  void* const first = allocated();
  launch(nullptr, first);
  EXPECT(cudaSetDevice(1) == 0);
  void* const second = allocated();
  launch(nullptr, second);
  EXPECT(cudaFree(first) == 0);  // with another device current
  EXPECT(cudaSetDevice(0) == 0);
  EXPECT(cudaFree(second) == 0);
  for (int i = 0; i < 20; ++i) {
    EXPECT(cudaSetDevice(i % 2) == 0);
    void* const memory = allocated();
    const fakeStream_t other = stream(kNonBlocking);
    launch(i % 3 == 0 ? nullptr : other, memory, 1000);
    EXPECT(cudaFree(memory) == 0);
  }
  EXPECT(races() == 0);
}

void threads() {
  std::atomic<void*> handed{nullptr};
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t) {
    all.emplace_back([&] {
      const fakeStream_t own = stream(kNonBlocking);
      for (int i = 0; i < 300; ++i) {
        void* memory = nullptr;
        if (i % 2 == 0) {
          memory = allocated();
          launch(own, memory, 1000);
          void* const before = handed.exchange(memory);  // another thread frees it
          if (before != nullptr) EXPECT(cudaFree(before) == 0);
        } else {
          EXPECT(cudaMallocAsync(&memory, kBytes, own) == 0);
          launch(own, memory, 1000);
          EXPECT(cudaFreeAsync(memory, own) == 0);
        }
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT(cudaFree(handed) == 0);
  EXPECT(races() == 0);
}

// A child has nothing of its parent's device, and leaves it alone; the parent goes on.
void forks() {
  void* const memory = allocated();
  const pid_t child = fork();
  if (child == 0) std::exit(0);
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  EXPECT(cudaFree(memory) == 0);
  EXPECT(cudaFree(allocated()) == 0);
}

// A child of a process that has not come to CUDA is one like any other.
void forksFirst() {
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 10; ++i) EXPECT(cudaFree(allocated()) == 0);
    std::exit(failures == 0 ? 0 : 1);
  }
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
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

// The runtime gives out entry points of the driver's: these are served too.
void entryPoints() {
  void* const before = allocated();
  void* found = nullptr;
  EXPECT(cudaGetDriverEntryPointByVersion("cuMemAlloc", &found, 12000, 0) == 0);
  const unsigned long long asked = calls("cuMemAlloc");
  CUdeviceptr memory = 0;
  EXPECT(reinterpret_cast<decltype(&cuMemAlloc_v2)>(found)(&memory, kBytes) == CUDA_SUCCESS);
  if (served()) EXPECT(calls("cuMemAlloc") == asked);
  EXPECT(cudaFree(reinterpret_cast<void*>(memory)) == 0);
  EXPECT(cudaFree(before) == 0);
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
                       {"crash", crash},
                       {"exit_from_thread", exitFromThread},
                       {"quick_exit", quickExit},
                       {"entry_points", entryPoints}};

}  // namespace

int main(int argc, char** argv) { return runCase(kCases, argc, argv); }
