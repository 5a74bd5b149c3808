// Devices that are reset, and peers that may use each other's memory. A device is met when the
// program makes a stream, allocates or submits work there.
#include "interop/preload/hooks/hook_streams.hpp"

using namespace cistern::preload::hip;

CISTERN_HOOK hipError_t hipDeviceReset() {
  const Entry entry;
  int device = 0;
  if (entry.serves() && driver()->currentDevice(&device) == hipSuccess)
    contexts().beforeEnd(device);
  return entry.pass(&Functions::hipDeviceReset);
}

CISTERN_HOOK hipError_t hipDevicePrimaryCtxReset(hipDevice_t device) {
  const Entry entry;
  if (entry.serves()) contexts().beforeEnd(device);
  return entry.pass(&Functions::hipDevicePrimaryCtxReset, device);
}

// The runtime opens what hipMalloc has given and will give, which is what Cistern's memory lies in.
// The current device may submit work that uses it from now on.
CISTERN_HOOK hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  const Entry entry;
  const hipError_t result = entry.pass(&Functions::hipDeviceEnablePeerAccess, peer, flags);
  int device = 0;
  if (entry.serves() && driver()->currentDevice(&device) == hipSuccess) {
    contexts().met(device);
    contexts().met(peer);
  }
  return result;
}

// ---- Streams that only HIP makes so -------------------------------------------------------------

CISTERN_HOOK hipError_t hipStreamCreate(hipStream_t* stream) {
  return createStream(&Functions::hipStreamCreate, stream);
}

CISTERN_HOOK hipError_t hipExtStreamCreateWithCUMask(hipStream_t* stream, uint32_t words,
                                                     const uint32_t* mask) {
  return createStream(&Functions::hipExtStreamCreateWithCUMask, stream, words, mask);
}

CISTERN_HOOK hipError_t hipDeviceSynchronize() {
  return waitForDevice(&Functions::hipDeviceSynchronize);
}
