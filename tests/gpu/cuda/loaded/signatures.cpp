// Prints the types of the functions that Cistern calls, and the layouts of what they take. The
// build compiles it with the headers of CUDA 13 and of CUDA 12, and the two must print the same.
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <typeinfo>

#include "allocator/device/vendor/cuda_functions.hpp"

#if CUDART_VERSION < 13000  // the names that cuda_library.cpp asks CUDA 12 for
#undef cudaStreamGetCaptureInfo
#define cudaStreamGetCaptureInfo cudaStreamGetCaptureInfo_v3
#define cudaGraphNodeGetDependencies cudaGraphNodeGetDependencies_v2
#endif

#define CISTERN_SHOW(function) std::puts(typeid(decltype(::function)).name());
#define CISTERN_SHOW_AS(function, type)

int main() {
  CISTERN_RUNTIME_FUNCTIONS(CISTERN_SHOW, CISTERN_SHOW_AS)
  for (const std::size_t number :
       {sizeof(cudaMemPoolProps), offsetof(cudaMemPoolProps, allocType),
        offsetof(cudaMemPoolProps, handleTypes), offsetof(cudaMemPoolProps, location),
        sizeof(cudaMemLocation), offsetof(cudaMemLocation, id), sizeof(cudaGraphEdgeData)})
    std::printf("%zu\n", number);
  for (const int value : {int(cudaMemcpyDeviceToDevice),
                          int(cudaStreamNonBlocking),
                          int(cudaEventDisableTiming),
                          int(cudaHostAllocPortable),
                          int(cudaEnableDefault),
                          int(cudaDriverEntryPointSuccess),
                          int(cudaDriverEntryPointSymbolNotFound),
                          int(cudaGraphDebugDotFlagsVerbose),
                          int(cudaMemAllocationTypePinned),
                          int(cudaMemLocationTypeDevice),
                          int(cudaMemPoolAttrReleaseThreshold),
                          int(cudaMemPoolAttrReservedMemCurrent),
                          int(cudaMemPoolAttrReservedMemHigh),
                          int(cudaDevAttrMemoryPoolsSupported),
                          int(cudaDevAttrComputeCapabilityMajor),
                          int(cudaDevAttrIpcEventSupport),
                          int(cudaStreamCaptureStatusActive),
                          int(cudaStreamCaptureStatusInvalidated),
                          int(cudaStreamCaptureModeGlobal),
                          int(cudaStreamCaptureModeThreadLocal),
                          int(cudaStreamCaptureModeRelaxed),
                          int(cudaErrorPeerAccessAlreadyEnabled),
                          int(cudaErrorNotReady),
                          int(cudaErrorSymbolNotFound),
                          int(cudaErrorUnknown),
                          int(cudaErrorApiFailureBase)})
    std::printf("%d\n", value);
}
