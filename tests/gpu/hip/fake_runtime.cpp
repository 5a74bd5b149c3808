// A libamdhip64 of its own: two devices, plain memory that is only counted, and none of the
// functions that a program can do without.
#include "tests/gpu/hip/fake_runtime.hpp"

#include <hip/hip_runtime_api.h>

namespace {

thread_local int current = 0;
thread_local hipError_t last = hipSuccess;
std::size_t allocated = 0;
bool peers[2][2] = {};

hipError_t answer(hipError_t error) {
  if (error != hipSuccess) last = error;
  return error;
}

}  // namespace

extern "C" {

hipError_t hipGetDeviceCount(int* count) {
  *count = 2;
  return hipSuccess;
}
hipError_t hipGetDevice(int* device) {
  *device = current;
  return hipSuccess;
}
hipError_t hipSetDevice(int device) {
  if (device < 0 || device > 1) return answer(hipErrorInvalidDevice);
  current = device;
  return hipSuccess;
}
hipError_t hipDeviceGetName(char* name, int bytes, hipDevice_t) {
  if (bytes < 5) return answer(hipErrorInvalidValue);
  for (int i = 0; i < 5; ++i) name[i] = "fake"[i];
  return hipSuccess;
}
hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t, int) {
  *value = 0;
  return hipSuccess;
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned) {
  bool& enabled = peers[current][peer];
  if (enabled) return answer(hipErrorPeerAccessAlreadyEnabled);
  enabled = true;
  return hipSuccess;
}

hipError_t hipGetLastError() {
  const hipError_t error = last;
  last = hipSuccess;
  return error;
}
hipError_t hipPeekAtLastError() { return last; }
const char* hipGetErrorName(hipError_t) { return "a fake error"; }
const char* hipGetErrorString(hipError_t) { return "the fake runtime's text"; }

hipError_t hipMalloc(void** memory, std::size_t bytes) {
  if (bytes > cistern::test::kFakeMemory - allocated) return answer(hipErrorOutOfMemory);
  *memory = reinterpret_cast<void*>(cistern::test::kFakeAddress + allocated);
  allocated += bytes;
  return hipSuccess;
}
hipError_t hipMemGetInfo(std::size_t* free, std::size_t* total) {
  *free = cistern::test::kFakeMemory - allocated;
  *total = cistern::test::kFakeMemory;
  return hipSuccess;
}

}  // extern "C"
