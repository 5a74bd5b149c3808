// The functions of HIP's runtime that Cistern calls. A new one is listed here first:
// loaded_runtime.hpp explains the use of the list.
#pragma once

#include <cstddef>

#include <hip/hip_runtime_api.h>

#define GPU(name) hip##name
#define GPU_NAMESPACE hip

// OF(name): the type is the header's declaration. So is the name, if a macro of the header maps it
// to a version of the function.
//
// AS(name, type): for functions whose type the header cannot give. Either it overloads the name
// with templates, or HIP 5.2, which we build with too, does not have the function.
#define CISTERN_RUNTIME_FUNCTIONS(OF, AS)                                                \
  OF(hipDeviceCanAccessPeer)                                                             \
  OF(hipDeviceEnablePeerAccess)                                                          \
  OF(hipDeviceGetAttribute)                                                              \
  OF(hipDeviceGetName)                                                                   \
  OF(hipDeviceSynchronize)                                                               \
  OF(hipGetDevice)                                                                       \
  OF(hipGetDeviceCount)                                                                  \
  OF(hipSetDevice)                                                                       \
  OF(hipGetErrorName)                                                                    \
  OF(hipGetErrorString)                                                                  \
  OF(hipGetLastError)                                                                    \
  OF(hipPeekAtLastError)                                                                 \
  OF(hipRuntimeGetVersion)                                                               \
                                                                                         \
  AS(hipMalloc, hipError_t(void**, std::size_t))                                         \
  OF(hipFree)                                                                            \
  OF(hipMemGetInfo)                                                                      \
  OF(hipIpcGetMemHandle)                                                                 \
  AS(hipHostMalloc, hipError_t(void**, std::size_t, unsigned))                           \
  OF(hipHostFree)                                                                        \
                                                                                         \
  OF(hipMemAddressFree)                                                                  \
  OF(hipMemcpyAsync)                                                                     \
  OF(hipMemsetAsync)                                                                     \
  OF(hipMemAddressReserve)                                                               \
  OF(hipMemCreate)                                                                       \
  OF(hipMemGetAllocationGranularity)                                                     \
  OF(hipMemMap)                                                                          \
  OF(hipMemRelease)                                                                      \
  OF(hipMemSetAccess)                                                                    \
  OF(hipMemUnmap)                                                                        \
                                                                                         \
  OF(hipStreamCreateWithFlags)                                                           \
  OF(hipStreamDestroy)                                                                   \
  OF(hipStreamQuery)                                                                     \
  OF(hipStreamSynchronize)                                                               \
  OF(hipStreamWaitEvent)                                                                 \
  OF(hipEventCreateWithFlags)                                                            \
  OF(hipEventDestroy)                                                                    \
  OF(hipEventQuery)                                                                      \
  OF(hipEventRecord)                                                                     \
  OF(hipEventSynchronize)                                                                \
                                                                                         \
  OF(hipStreamBeginCapture)                                                              \
  OF(hipStreamEndCapture)                                                                \
  OF(hipStreamGetCaptureInfo)                                                            \
  OF(hipStreamGetCaptureInfo_v2)                                                         \
  OF(hipThreadExchangeStreamCaptureMode)                                                 \
  AS(hipGraphDebugDotPrint, hipError_t(hipGraph_t, const char*, unsigned))               \
  OF(hipGraphDestroy)                                                                    \
  OF(hipGraphExecDestroy)                                                                \
  OF(hipGraphInstantiateWithFlags)                                                       \
  OF(hipGraphLaunch)                                                                     \
  OF(hipGraphNodeGetDependencies)                                                        \
                                                                                         \
  OF(hipFreeAsync)                                                                       \
  AS(hipMallocFromPoolAsync, hipError_t(void**, std::size_t, hipMemPool_t, hipStream_t)) \
  OF(hipMemPoolCreate)                                                                   \
  OF(hipMemPoolDestroy)                                                                  \
  OF(hipMemPoolGetAttribute)                                                             \
  OF(hipMemPoolSetAttribute)                                                             \
  OF(hipMemPoolTrimTo)
