// Devices: how many, which is current, what they are; and errors.
#include <cstring>

#include "fake_runtime.hpp"

namespace fake {
namespace {

thread_local int current_ordinal = 0;
thread_local cudaError_t last_error = cudaSuccess;

bool isDevice(int ordinal) { return ordinal >= 0 && ordinal < kDevices; }

cudaError_t errorOf(cistern::ErrorKind kind) {
  switch (kind) {
    case cistern::ErrorKind::kOutOfMemory:
      return cudaErrorMemoryAllocation;
    case cistern::ErrorKind::kInvalidValue:
      return cudaErrorInvalidValue;
    case cistern::ErrorKind::kInvalidHandle:
      return cudaErrorInvalidResourceHandle;
    case cistern::ErrorKind::kNotSupported:
      return cudaErrorNotSupported;
    case cistern::ErrorKind::kNoDevice:
      return cudaErrorNoDevice;
    case cistern::ErrorKind::kCaptureForbidden:
      return cudaErrorStreamCaptureUnsupported;
    case cistern::ErrorKind::kCaptureInvalidated:
      return cudaErrorStreamCaptureInvalidated;
    default:
      return cudaErrorUnknown;
  }
}

int attribute(cudaDeviceAttr which) {
  switch (which) {
    case cudaDevAttrMaxThreadsPerBlock:
      return 1024;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return 48 << 10;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return 227 << 10;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMultiProcessorCount:
      return 132;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2048;
    case cudaDevAttrComputeCapabilityMajor:
      return 9;
    case cudaDevAttrUnifiedAddressing:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

int currentOrdinal() { return current_ordinal; }

cistern::sim::SimulatedDevice& device(int ordinal) {
  return dynamic_cast<cistern::sim::SimulatedDevice&>(cistern::allocator(ordinal).device());
}

cudaError_t answer(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}
cudaError_t answer(const cistern::DeviceError& error) { return answer(errorOf(error.kind)); }
cudaError_t answer(const cistern::Result<bool>& ready) {
  if (!ready.ok()) return answer(ready.error());
  return ready.value() ? cudaSuccess : cudaErrorNotReady;
}

}  // namespace fake

FAKE_API cudaError_t cudaGetLastError() { return std::exchange(fake::last_error, cudaSuccess); }
FAKE_API cudaError_t cudaPeekAtLastError() { return fake::last_error; }
FAKE_API cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
FAKE_API cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

FAKE_API cudaError_t cudaGetDeviceCount(int* count) {
  *count = fake::kDevices;
  return cudaSuccess;
}
FAKE_API cudaError_t cudaGetDevice(int* ordinal) {
  *ordinal = fake::current_ordinal;
  return cudaSuccess;
}
FAKE_API cudaError_t cudaSetDevice(int ordinal) {
  if (!fake::isDevice(ordinal)) return fake::answer(cudaErrorInvalidDevice);
  fake::current_ordinal = ordinal;
  return cudaSuccess;
}

FAKE_API cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  if (!fake::isDevice(ordinal)) return fake::answer(cudaErrorInvalidDevice);
  const auto memory = fake::device(ordinal).memoryInfo();
  if (!memory.ok()) return fake::answer(memory.error());
  *properties = {};
  std::strcpy(properties->name, "simulated device");
  properties->uuid.bytes[0] = char(ordinal + 1);
  properties->totalGlobalMem = memory.value().total_bytes;
  properties->sharedMemPerBlock = 48 << 10;
  properties->sharedMemPerMultiprocessor = 228 << 10;
  properties->sharedMemPerBlockOptin = 227 << 10;
  properties->regsPerBlock = properties->regsPerMultiprocessor = 65536;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 0x7fffffff;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->multiProcessorCount = 132;
  properties->l2CacheSize = 50 << 20;
  properties->major = 9;
  properties->pciBusID = ordinal;
  properties->unifiedAddressing = 1;
  return cudaSuccess;
}
FAKE_API cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int ordinal) {
  if (!fake::isDevice(ordinal)) return fake::answer(cudaErrorInvalidDevice);
  *value = fake::attribute(which);
  return cudaSuccess;
}
FAKE_API cudaError_t cudaDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  const auto reaches = fake::device(ordinal).canAccessPeer(peer);
  if (!reaches.ok()) return fake::answer(reaches.error());
  *can = reaches.value() ? 1 : 0;
  return cudaSuccess;
}
FAKE_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  return fake::answer(fake::device(peer).admitPeer(fake::currentOrdinal()));
}
FAKE_API cudaError_t cudaDeviceSynchronize() {
  return fake::answer(fake::current().synchronizeDevice());
}
FAKE_API cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total) {
  const auto memory = fake::current().memoryInfo();
  if (!memory.ok()) return fake::answer(memory.error());
  *free_bytes = memory.value().free_bytes;
  *total = memory.value().total_bytes;
  return cudaSuccess;
}
