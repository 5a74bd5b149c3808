// What the CUDA backend leaves behind in the runtime's state, seen through the runtime itself: the
// thread's current device, and its last error.
#include <thread>

#include <cuda_runtime_api.h>

#include "allocator/device/vendor/vendor.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skipped.hpp"

using namespace cistern;

namespace {

int runtimesDevice() {
  int ordinal = -1;
  REQUIRE(cudaGetDevice(&ordinal) == cudaSuccess);
  return ordinal;
}

}  // namespace

TEST_CASE("calls leave the thread's current device as it was", "[gpu]") {
  const Result<int> count = cuda::deviceCount();
  if (!count.ok()) return test::skipped("no GPU");
  for (int ordinal = 0; ordinal < count.value(); ++ordinal) {
    const auto device = cuda::open(ordinal).orThrow();
    for (int current = 0; current < count.value(); ++current) {
      REQUIRE(cudaSetDevice(current) == cudaSuccess);
      const Address address = device->malloc(512).orThrow();
      CHECK(runtimesDevice() == current);
      cudaPointerAttributes attributes{};
      REQUIRE(cudaPointerGetAttributes(&attributes, toPointer(address)) == cudaSuccess);
      CHECK(attributes.device == ordinal);
      device->free(address).orThrow();
      CHECK(runtimesDevice() == current);
    }
  }
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("a thread that chose no device still has the default one after a call", "[gpu]") {
  const Result<int> count = cuda::deviceCount();
  if (!count.ok()) return test::skipped("no GPU");
  const auto device = cuda::open(count.value() - 1).orThrow();
  int after = -1;
  std::thread([&] {
    (void)device->memoryInfo();
    (void)cudaGetDevice(&after);
  }).join();
  CHECK(after == 0);
}

TEST_CASE("a thread that chose no device can use the runtime after a call", "[gpu]") {
  if (!cuda::deviceCount().ok()) return test::skipped("no GPU");
  const auto device = cuda::open(0).orThrow();
  cudaError_t allocated = cudaErrorUnknown;
  std::thread([&] {
    (void)device->memoryInfo();
    void* block = nullptr;
    allocated = cudaMalloc(&block, 512);
    (void)cudaFree(block);
  }).join();
  CHECK(allocated == cudaSuccess);
}

TEST_CASE("a failed call leaves no last error for the user", "[gpu]") {
  if (!cuda::deviceCount().ok()) return test::skipped("no GPU");
  const auto device = cuda::open(0).orThrow();
  CHECK(!device->malloc(std::size_t(1) << 60).ok());
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  CHECK(!device->queryEvent(Event{}).ok());
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

// There, even asking for the last error fails, and with the same code.
TEST_CASE("asking for devices leaves the last error as it was without a driver too") {
  if (cuda::deviceCount().ok()) return test::skipped("there is a GPU");
  const cudaError_t before = cudaPeekAtLastError();
  CHECK(!cuda::deviceCount().ok());
  CHECK(!cuda::open(0).ok());
  CHECK(cudaPeekAtLastError() == before);
}
