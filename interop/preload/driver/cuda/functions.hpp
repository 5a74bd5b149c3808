// The driver's own functions, without our hooks.
//
// They are looked up in libcuda itself, with the dlsym of the C library: what calls them by this
// table never comes into a hook. The driver is not loaded for it: until the program loads it, there
// is no table.
#pragma once

#include <cuda.h>  // types and declarations only

// Spellings that the header does not declare by themselves.
#undef cuIpcOpenMemHandle  // the newer version's, as are
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuGetProcAddress
extern "C" {
CUresult cuDevicePrimaryCtxRelease(CUdevice);
CUresult cuDevicePrimaryCtxReset(CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuIpcOpenMemHandle(CUdeviceptr*, CUipcMemHandle, unsigned);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr*, CUipcMemHandle, unsigned);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr*, size_t, CUstream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr, CUstream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr*, size_t, CUmemoryPool, CUstream);
CUresult cuStreamBeginCapture_v2_ptsz(CUstream, CUstreamCaptureMode);
CUresult cuStreamBeginCaptureToGraph_ptsz(CUstream, CUgraph, const CUgraphNode*,
                                          const CUgraphEdgeData*, size_t, CUstreamCaptureMode);
CUresult cuStreamEndCapture_ptsz(CUstream, CUgraph*);
CUresult cuStreamSynchronize_ptsz(CUstream);
CUresult cuCtxCreate_v2(CUcontext*, unsigned, CUdevice);
CUresult cuCtxCreate_v3(CUcontext*, CUexecAffinityParam*, int, unsigned, CUdevice);
CUresult cuGetProcAddress(const char*, void**, int, cuuint64_t);  // before CUDA 12
CUresult cuMemSetMemPool(CUmemLocation*, CUmemAllocationType, CUmemoryPool);
}

namespace cistern::preload::cuda {

// Those that have a hook: symbol, name and version to ask cuGetProcAddress for, and whether they
// are the spelling for per-thread default streams.
#define CISTERN_HOOKED_FUNCTIONS(X)                                               \
  X(cuMemAlloc_v2, "cuMemAlloc", 3020, false)                                     \
  X(cuMemFree_v2, "cuMemFree", 3020, false)                                       \
  X(cuMemGetInfo_v2, "cuMemGetInfo", 3020, false)                                 \
  X(cuMemGetAddressRange_v2, "cuMemGetAddressRange", 3020, false)                 \
  X(cuMemAllocAsync, "cuMemAllocAsync", 11020, false)                             \
  X(cuMemAllocAsync_ptsz, "cuMemAllocAsync", 11020, true)                         \
  X(cuMemFreeAsync, "cuMemFreeAsync", 11020, false)                               \
  X(cuMemFreeAsync_ptsz, "cuMemFreeAsync", 11020, true)                           \
  X(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", 11020, false)             \
  X(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", 11020, true)         \
  X(cuDeviceSetMemPool, "cuDeviceSetMemPool", 11020, false)                       \
  X(cuMemSetMemPool, "cuMemSetMemPool", 13000, false)                             \
  X(cuMemPoolSetAccess, "cuMemPoolSetAccess", 11020, false)                       \
  X(cuMemPoolGetAttribute, "cuMemPoolGetAttribute", 11020, false)                 \
  X(cuMemPoolSetAttribute, "cuMemPoolSetAttribute", 11020, false)                 \
  X(cuMemPoolTrimTo, "cuMemPoolTrimTo", 11020, false)                             \
  X(cuMemAllocPitch_v2, "cuMemAllocPitch", 3020, false)                           \
  X(cuMemAllocManaged, "cuMemAllocManaged", 6000, false)                          \
  X(cuArrayCreate_v2, "cuArrayCreate", 3020, false)                               \
  X(cuArray3DCreate_v2, "cuArray3DCreate", 3020, false)                           \
  X(cuMipmappedArrayCreate, "cuMipmappedArrayCreate", 5000, false)                \
  X(cuMemCreate, "cuMemCreate", 10020, false)                                     \
  X(cuIpcGetMemHandle, "cuIpcGetMemHandle", 4010, false)                          \
  X(cuIpcOpenMemHandle, "cuIpcOpenMemHandle", 4010, false)                        \
  X(cuIpcOpenMemHandle_v2, "cuIpcOpenMemHandle", 11000, false)                    \
  X(cuIpcCloseMemHandle, "cuIpcCloseMemHandle", 4010, false)                      \
  X(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle", 11000, false)     \
  X(cuPointerGetAttribute, "cuPointerGetAttribute", 4000, false)                  \
  X(cuPointerGetAttributes, "cuPointerGetAttributes", 7000, false)                \
  X(cuStreamCreate, "cuStreamCreate", 2000, false)                                \
  X(cuStreamCreateWithPriority, "cuStreamCreateWithPriority", 5050, false)        \
  X(cuGreenCtxStreamCreate, "cuGreenCtxStreamCreate", 12050, false)               \
  X(cuStreamDestroy_v2, "cuStreamDestroy", 4000, false)                           \
  X(cuStreamBeginCapture_v2, "cuStreamBeginCapture", 10010, false)                \
  X(cuStreamBeginCapture_v2_ptsz, "cuStreamBeginCapture", 10010, true)            \
  X(cuStreamBeginCaptureToGraph, "cuStreamBeginCaptureToGraph", 12030, false)     \
  X(cuStreamBeginCaptureToGraph_ptsz, "cuStreamBeginCaptureToGraph", 12030, true) \
  X(cuStreamEndCapture, "cuStreamEndCapture", 10000, false)                       \
  X(cuStreamEndCapture_ptsz, "cuStreamEndCapture", 10000, true)                   \
  X(cuStreamSynchronize, "cuStreamSynchronize", 2000, false)                      \
  X(cuStreamSynchronize_ptsz, "cuStreamSynchronize", 7000, true)                  \
  X(cuCtxSynchronize, "cuCtxSynchronize", 2000, false)                            \
  X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000, false)            \
  X(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 7000, false)          \
  X(cuDevicePrimaryCtxReset, "cuDevicePrimaryCtxReset", 7000, false)              \
  X(cuDevicePrimaryCtxRelease_v2, "cuDevicePrimaryCtxRelease", 11000, false)      \
  X(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", 11000, false)          \
  X(cuCtxCreate_v2, "cuCtxCreate", 3020, false)                                   \
  X(cuCtxCreate_v3, "cuCtxCreate", 11040, false)                                  \
  X(cuCtxCreate_v4, "cuCtxCreate", 12050, false)                                  \
  X(cuCtxDestroy_v2, "cuCtxDestroy", 4000, false)                                 \
  X(cuCtxFromGreenCtx, "cuCtxFromGreenCtx", 12040, false)                         \
  X(cuCtxEnablePeerAccess, "cuCtxEnablePeerAccess", 4000, false)                  \
  X(cuGetExportTable, "cuGetExportTable", 3000, false)                            \
  X(cuGetProcAddress_v2, "cuGetProcAddress", 12000, false)                        \
  X(cuGetProcAddress, "cuGetProcAddress", 11030, false)

// Those that we only call.
#define CISTERN_CALLED_FUNCTIONS(X)    \
  X(cuGetErrorName)                    \
  X(cuCtxGetCurrent)                   \
  X(cuCtxPushCurrent_v2)               \
  X(cuCtxPopCurrent_v2)                \
  X(cuCtxGetDevice)                    \
  X(cuDeviceGetName)                   \
  X(cuDeviceGetAttribute)              \
  X(cuDeviceCanAccessPeer)             \
  X(cuDeviceGetDefaultMemPool)         \
  X(cuDeviceGetMemPool)                \
  X(cuDevicePrimaryCtxGetState)        \
  X(cuMemGetAllocationGranularity)     \
  X(cuMemAddressReserve)               \
  X(cuMemAddressFree)                  \
  X(cuMemRelease)                      \
  X(cuMemMap)                          \
  X(cuMemSetAccess)                    \
  X(cuMemUnmap)                        \
  X(cuMemExportToShareableHandle)      \
  X(cuMemImportFromShareableHandle)    \
  X(cuStreamWaitEvent)                 \
  X(cuStreamQuery)                     \
  X(cuStreamIsCapturing)               \
  X(cuThreadExchangeStreamCaptureMode) \
  X(cuEventCreate)                     \
  X(cuEventDestroy_v2)                 \
  X(cuEventRecord)                     \
  X(cuEventQuery)                      \
  X(cuEventSynchronize)

}  // namespace cistern::preload::cuda
