// The public headers with the runtime's own streams, and a capture that the program makes itself.
#include <vector>

#include <cuda_runtime_api.h>

#include "allocator/device/vendor/vendor.hpp"
#include "cistern/cistern.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {
namespace {

bool ok(cudaError_t error) {
  UNSCOPED_INFO(cudaGetErrorString(error));
  return error == cudaSuccess;
}

/// A stream of the runtime's, and numbers on both sides.
struct Runtime {
  Runtime() { REQUIRE(ok(cudaStreamCreate(&stream))); }
  ~Runtime() {
    allocator().forgetStream(stream);
    (void)cudaStreamDestroy(stream);
  }
  std::vector<int> read(const int* from) {
    std::vector<int> to(1'000);
    REQUIRE(ok(cudaMemcpyAsync(to.data(), from, 4'000, cudaMemcpyDeviceToHost, stream)));
    REQUIRE(ok(cudaStreamSynchronize(stream)));
    return to;
  }
  cudaStream_t stream = nullptr;
};

}  // namespace

TEST_CASE("the shared allocator works on the runtime's own streams", "[gpu]") {
  if (!cuda::deviceCount().ok()) return skipped("no GPU");
  Runtime runtime;
  void* const block = allocate(24 * kMiB, runtime.stream);
  REQUIRE(ok(cudaMemsetAsync(block, 1, 24 * kMiB, runtime.stream)));
  cistern::free(block);

  DeviceBuffer<int> buffer(1'000, runtime.stream);
  std::vector<int> values(1'000);
  for (int i = 0; i < 1'000; ++i) values[std::size_t(i)] = i;
  REQUIRE(ok(cudaMemcpyAsync(buffer.data(), values.data(), 4'000, cudaMemcpyHostToDevice,
                             runtime.stream)));
  buffer.resize(1 << 22);
  CHECK(runtime.read(buffer.data()) == values);
}

TEST_CASE("a graph that the program captures itself has its memory in place", "[gpu]") {
  if (!cuda::deviceCount().ok()) return skipped("no GPU");
  Runtime runtime;
  const cudaStream_t stream = runtime.stream;
  DeviceBuffer<int> result(1 << 20, stream);
  GraphMemory memory(pools());
  REQUIRE(ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal)));
  memory.captureBegin(stream);
  int* const scratch = static_cast<int*>(allocate(4 * kMiB, stream));
  REQUIRE(ok(cudaMemsetAsync(scratch, 7, 4 * kMiB, stream)));
  REQUIRE(ok(cudaMemcpyAsync(result.data(), scratch, 4 * kMiB, cudaMemcpyDeviceToDevice, stream)));
  cistern::free(scratch);
  void* const again = allocate(4 * kMiB, stream);
  CHECK(again == scratch);
  cistern::free(again);
  memory.captureEnd();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  REQUIRE(ok(cudaStreamEndCapture(stream, &graph)));
  REQUIRE(ok(cudaGraphInstantiate(&exec, graph, 0)));
  for (int i = 0; i < 10; ++i) {
    void* const other = allocate(4 * kMiB, stream);
    CHECK(other != scratch);
    REQUIRE(ok(cudaMemsetAsync(other, 9, 4 * kMiB, stream)));
    memory.launching(stream);
    REQUIRE(ok(cudaGraphLaunch(exec, stream)));
    cistern::free(other);
  }
  CHECK(runtime.read(result.data()).at(999) == 0x07070707);
  REQUIRE(ok(cudaGraphExecDestroy(exec)));
  REQUIRE(ok(cudaGraphDestroy(graph)));
  memory.reset();
}

}  // namespace cistern::test
