// cuDSS without a device.
#include <cudss.h>

#include "cistern/handles/cudss.hpp"
#include "tests/handles/bound/fake_vendor.hpp"
#include "tests/handles/cudss/fake_memory.hpp"

CISTERN_FAKE_HANDLE(cudssStatus_t, CUDSS_STATUS_SUCCESS, CUDSS_STATUS_ALLOC_FAILED, cudssHandle_t,
                    cudssCreate, cudssDestroy)
CISTERN_FAKE_SET_STREAM(cudssStatus_t, CUDSS_STATUS_SUCCESS, cudssHandle_t, cudaStream_t,
                        cudssSetStream)

using cistern::test::FakeMemory;

extern "C" cudssStatus_t cudssSetDeviceMemHandler(cudssHandle_t handle,
                                                  const cudssDeviceMemHandler_t* handler) {
  if (FakeMemory::refuse_handler) return CUDSS_STATUS_INVALID_VALUE;
  FakeMemory::handlers()[handle] = *handler;
  return CUDSS_STATUS_SUCCESS;
}

extern "C" cudaError_t cudaMallocAsync(void** memory, std::size_t, cudaStream_t) {
  *memory = FakeMemory::of_the_driver;
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
extern "C" cudaError_t cudaFreeAsync(void* memory, cudaStream_t) {
  FakeMemory::given_to_driver.push_back(memory);
  return cudaSuccess;
}
extern "C" cudaError_t cudaGetLastError() {
  ++FakeMemory::errors_cleared;
  return cudaSuccess;
}

namespace cistern {

const handles::VendorRuntime& cuda::runtime() { return test::FakeRuntime::table(); }

namespace test {

std::vector<BoundLibrary> boundLibraries() {
  return {{"cuDSS", "cudssCreate", "CUDSS_STATUS_ALLOC_FAILED (2)", true,
           [] { return reinterpret_cast<FakeState*>(getCurrentCudssHandle()); }}};
}

}  // namespace test
}  // namespace cistern
