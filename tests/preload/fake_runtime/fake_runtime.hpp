// A runtime as far as the tests' programs need one: it finds the driver as the real one does, by
// dlopen, dlsym and cuGetProcAddress, and calls nothing of it by name. Once as an archive, once as
// a shared library.
#pragma once

#include <cstddef>

#define FAKE_API extern "C" __attribute__((visibility("default")))

using fakeStream_t = struct CUstream_st*;

FAKE_API int cudaSetDevice(int device);
FAKE_API int cudaMalloc(void** out, std::size_t bytes);
FAKE_API int cudaFree(void* pointer);
FAKE_API int cudaMallocAsync(void** out, std::size_t bytes, fakeStream_t stream);
FAKE_API int cudaFreeAsync(void* pointer, fakeStream_t stream);
FAKE_API int cudaMallocAsync_ptsz(void** out, std::size_t bytes, fakeStream_t stream);
FAKE_API int cudaFreeAsync_ptsz(void* pointer, fakeStream_t stream);
FAKE_API int cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total);
FAKE_API int cudaMallocManaged(void** out, std::size_t bytes, unsigned flags);
FAKE_API int cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind);

struct fakeIpcMemHandle_t {
  char reserved[64];
};
FAKE_API int cudaIpcGetMemHandle(fakeIpcMemHandle_t* handle, void* pointer);
FAKE_API int cudaIpcOpenMemHandle(void** out, fakeIpcMemHandle_t handle, unsigned flags);
FAKE_API int cudaIpcCloseMemHandle(void* pointer);

FAKE_API int cudaStreamCreateWithFlags(fakeStream_t* stream, unsigned flags);
FAKE_API int cudaStreamDestroy(fakeStream_t stream);
FAKE_API int cudaStreamBeginCapture(fakeStream_t stream, int mode);
FAKE_API int cudaStreamEndCapture(fakeStream_t stream, void** graph);
FAKE_API int cudaThreadExchangeStreamCaptureMode(int* mode);
FAKE_API int cudaDeviceSynchronize();
FAKE_API int cudaDeviceReset();
/// The driver's function of the name, as of a version of CUDA.
FAKE_API int cudaGetDriverEntryPointByVersion(const char* name, void** out, unsigned version,
                                              unsigned long long flags);
