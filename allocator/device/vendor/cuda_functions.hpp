// The functions of CUDA's runtime that Cistern calls. A new one is listed here first. A build that
// loads the runtime (CISTERN_CUDA_RUNTIME=loaded) takes the list; loaded_runtime.hpp explains it.
// Compare a new one in the libraries of CUDA 12 and 13 too: cuda_library.cpp names the differences.
#pragma once

#include <cstddef>

#include <cuda_runtime_api.h>

#define GPU(name) cuda##name
#define GPU_NAMESPACE cuda

// OF(name): the type is the header's declaration.
//
// AS(name, type): for functions whose type the header cannot give. CUDA has none.
#define CISTERN_RUNTIME_FUNCTIONS(OF, AS) \
  OF(cudaDeviceCanAccessPeer)             \
  OF(cudaDeviceEnablePeerAccess)          \
  OF(cudaDeviceGetAttribute)              \
  OF(cudaDeviceSynchronize)               \
  OF(cudaGetDevice)                       \
  OF(cudaGetDeviceCount)                  \
  OF(cudaSetDevice)                       \
  OF(cudaGetErrorName)                    \
  OF(cudaGetErrorString)                  \
  OF(cudaGetLastError)                    \
  OF(cudaPeekAtLastError)                 \
  OF(cudaDriverGetVersion)                \
  OF(cudaRuntimeGetVersion)               \
  OF(cudaGetDriverEntryPointByVersion)    \
                                          \
  OF(cudaMalloc)                          \
  OF(cudaFree)                            \
  OF(cudaMemGetInfo)                      \
  OF(cudaHostAlloc)                       \
  OF(cudaFreeHost)                        \
  OF(cudaMemcpyAsync)                     \
  OF(cudaMemsetAsync)                     \
                                          \
  OF(cudaStreamCreateWithFlags)           \
  OF(cudaStreamDestroy)                   \
  OF(cudaStreamQuery)                     \
  OF(cudaStreamSynchronize)               \
  OF(cudaStreamWaitEvent)                 \
  OF(cudaEventCreateWithFlags)            \
  OF(cudaEventDestroy)                    \
  OF(cudaEventQuery)                      \
  OF(cudaEventRecord)                     \
  OF(cudaEventSynchronize)                \
                                          \
  OF(cudaStreamBeginCapture)              \
  OF(cudaStreamEndCapture)                \
  OF(cudaStreamGetCaptureInfo)            \
  OF(cudaThreadExchangeStreamCaptureMode) \
  OF(cudaGraphDebugDotPrint)              \
  OF(cudaGraphDestroy)                    \
  OF(cudaGraphExecDestroy)                \
  OF(cudaGraphInstantiateWithFlags)       \
  OF(cudaGraphLaunch)                     \
  OF(cudaGraphNodeGetDependencies)        \
                                          \
  OF(cudaFreeAsync)                       \
  OF(cudaMallocFromPoolAsync)             \
  OF(cudaMemPoolCreate)                   \
  OF(cudaMemPoolDestroy)                  \
  OF(cudaMemPoolGetAttribute)             \
  OF(cudaMemPoolSetAttribute)             \
  OF(cudaMemPoolTrimTo)
