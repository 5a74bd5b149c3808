// ROCm's libraries, which are ours here and check their callers, over AMD's runtime on played GPUs.
// The cases of tests/handles/bound run in this program too, on the runtime as it is given here.
#include <stdexcept>
#include <string>
#include <vector>

#include <hip/hip_runtime_api.h>

#include "cistern/allocator.hpp"
#include "cistern/current.hpp"
#include "cistern/handles/library.hpp"
#include "tests/handles/bound/fake_vendor.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/threads.hpp"
#include "tests/support/vendor_work.hpp"

namespace cistern::test {
namespace {

hipStream_t native(std::uintptr_t stream) { return reinterpret_cast<hipStream_t>(stream); }

/// Not an assertion: it is called on several threads at once.
void require(hipError_t error) {
  if (error != hipSuccess) throw std::runtime_error(hipGetErrorName(error));
}

constexpr std::size_t kMiBytes = std::size_t{1} << 20;

}  // namespace

int Below::current() {
  int device = -1;
  require(hipGetDevice(&device));
  return device;
}

void Below::setCurrent(int device) { require(hipSetDevice(device)); }

bool Below::relaxed() {
  hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
  require(hipThreadExchangeStreamCaptureMode(&mode));
  const hipStreamCaptureMode found = mode;
  require(hipThreadExchangeStreamCaptureMode(&mode));
  return found == hipStreamCaptureModeRelaxed;
}

Stream Below::newStream() {
  hipStream_t stream = nullptr;
  require(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  return Stream{reinterpret_cast<std::uintptr_t>(stream)};
}

void Below::destroyStream(Stream stream) { require(hipStreamDestroy(native(stream.raw))); }

bool Below::isAlive(Stream stream) {
  const hipError_t error = hipStreamQuery(native(stream.raw));
  if (error != hipSuccess) (void)hipGetLastError();
  return error != hipErrorInvalidHandle && error != hipErrorInvalidValue &&
         error != hipErrorContextIsDestroyed;
}

void* Below::allocate(std::size_t bytes) {
  void* memory = nullptr;
  if (hipMalloc(&memory, bytes) == hipSuccess) return memory;
  (void)hipGetLastError();
  return nullptr;
}

void Below::free(void* memory) { (void)hipFree(memory); }

bool Below::work(void* memory, std::size_t bytes, std::uintptr_t stream) {
  return hipMemsetAsync(memory, 1, bytes, native(stream)) == hipSuccess;
}

TEST_CASE("a library's set_stream tells of a stream that is destroyed", "[bound]") {
  FakeState* const handle = FakeLibraries::newState();
  const Stream stream = Below::newStream();
  Below::destroyStream(stream);
  FakeLibraries::setStream(handle, stream.raw);
  CHECK(FakeLibraries::takeFaults() ==
        std::vector<std::string>{"set_stream: the stream is destroyed"});
  FakeLibraries::end(handle);
}

TEST_CASE("a creation that finds the GPU full gets the memory that is cached", "[bound]") {
  constexpr int kDevice = 6;  // of which nobody has a handle yet
  const auto work = hipWork(kDevice);
  REQUIRE(work != nullptr);
  const DeviceGuard guard(kDevice);
  CachingAllocator allocator(work->device(), Options::parse("backing:segments"));
  const struct Restored {
    ~Restored() {
      FakeLibraries::memory_bytes = 4096;
      setWorkspaceAllocator(kDevice, nullptr);
    }
  } restored;
  setWorkspaceAllocator(kDevice, &allocator);
  // All that there is goes to the cache, in blocks of 16 MiB.
  std::vector<void*> blocks;
  try {
    while (true) blocks.push_back(allocator.allocate(16 * kMiBytes));
  } catch (const OutOfMemory&) {
  }
  REQUIRE(blocks.size() > 1);
  for (void* block : blocks) allocator.free(block);
  FakeLibraries::memory_bytes = 20 * kMiBytes;
  REQUIRE(Below::allocate(FakeLibraries::memory_bytes) == nullptr);
  for (const BoundLibrary& library : boundLibraries()) {
    INFO(library.name);
    onThreads(1, [&] {
      const DeviceGuard inner(kDevice);
      FakeLibraries::compute(library.get());
    });
  }
  CHECK(FakeLibraries::takeFaults() == std::vector<std::string>{});
}

TEST_CASE("a handle that is made while its thread captures leaves the capture whole", "[bound]") {
  for (const BoundLibrary& library : boundLibraries()) {
    INFO(library.name);
    onThreads(1, [&] {
      const DeviceGuard device(5);  // of which nobody has a handle yet
      const Stream stream = Below::newStream();
      const StreamGuard guard(stream);
      REQUIRE(hipStreamBeginCapture(native(stream.raw), hipStreamCaptureModeThreadLocal) ==
              hipSuccess);
      FakeState* const handle = library.get();
      FakeLibraries::compute(handle);
      hipGraph_t graph = nullptr;
      REQUIRE(hipStreamEndCapture(native(stream.raw), &graph) == hipSuccess);
      std::size_t nodes = 0;
      REQUIRE(hipGraphGetNodes(graph, nullptr, &nodes) == hipSuccess);
      CHECK(nodes == 1);  // what it computed
      REQUIRE(hipGraphDestroy(graph) == hipSuccess);
      CHECK(handle->created_relaxed);
      {
        const StreamGuard none(Stream{});
        CHECK(library.get()->stream == 0);
      }
      Below::destroyStream(stream);
    });
  }
  CHECK(FakeLibraries::takeFaults() == std::vector<std::string>{});
}

// Another process, which sees no GPU.
TEST_CASE("asks for handles without a GPU", "[.none]") {
  for (const BoundLibrary& library : boundLibraries()) {
    std::string what;
    try {
      (void)library.get();
    } catch (const Error& error) {
      what = error.what();
    }
    INFO(what);
    CHECK(what.find("no usable") != std::string::npos);
  }
}

TEST_CASE("without a GPU each getter says so", "[bound]") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("HIP_VISIBLE_DEVICES", "-1", 1);
    execl("/proc/self/exe", "asks", "[.none]", nullptr);
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

}  // namespace cistern::test
