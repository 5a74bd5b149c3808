// Contexts that come and go, and peers that may use each other's memory.
#include "interop/preload/hooks/hook_streams.hpp"

using namespace cistern::preload;
using namespace cistern::preload::cuda;

namespace {

CUresult came(const Entry& entry, CUresult result, const CUcontext* context) {
  if (result == CUDA_SUCCESS && entry.serves()) contexts().met(*context);
  return result;
}

// The primary context of a device, if it exists; else null.
CUcontext primaryOf(const Entry& entry, CUdevice device) {
  unsigned flags = 0;
  int alive = 0;
  const CUresult asked = entry.pass(&Functions::cuDevicePrimaryCtxGetState, device, &flags, &alive);
  if (asked != CUDA_SUCCESS || alive == 0) return nullptr;
  CUcontext context = nullptr;
  if (entry.pass(&Functions::cuDevicePrimaryCtxRetain, &context, device) != CUDA_SUCCESS)
    return nullptr;
  (void)entry.pass(&Functions::cuDevicePrimaryCtxRelease_v2, device);
  return context;
}

}  // namespace

CISTERN_HOOK CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const Entry entry;
  return came(entry, entry.pass(&Functions::cuDevicePrimaryCtxRetain, context, device), context);
}

CISTERN_HOOK CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  const Entry entry;
  return came(entry, entry.pass(&Functions::cuCtxCreate_v2, context, flags, device), context);
}

CISTERN_HOOK CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* affinities, int count,
                                     unsigned flags, CUdevice device) {
  const Entry entry;
  return came(entry,
              entry.pass(&Functions::cuCtxCreate_v3, context, affinities, count, flags, device),
              context);
}

CISTERN_HOOK CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters,
                                     unsigned flags, CUdevice device) {
  const Entry entry;
  return came(entry, entry.pass(&Functions::cuCtxCreate_v4, context, parameters, flags, device),
              context);
}

// A part of a device, with streams and a default stream of its own.
CISTERN_HOOK CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  const Entry entry;
  return came(entry, entry.pass(&Functions::cuCtxFromGreenCtx, context, green), context);
}

CISTERN_HOOK CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx green, unsigned flags,
                                             int priority) {
  return createStream(&Functions::cuGreenCtxStreamCreate, stream, green, flags, priority);
}

CISTERN_HOOK CUresult cuCtxDestroy_v2(CUcontext context) {
  const Entry entry;
  if (entry.opens() && context != nullptr) contexts().beforeEnd(context);
  return entry.pass(&Functions::cuCtxDestroy_v2, context);
}

namespace {

CUresult resetPrimary(CUresult (*FunctionTable::*reset)(CUdevice), CUdevice device) {
  const Entry entry;
  if (entry.opens() && contexts().any()) {
    if (const CUcontext context = primaryOf(entry, device)) contexts().beforeEnd(context);
  }
  return entry.pass(reset, device);
}

// The last release ends the context; which is the last, the driver says afterwards.
CUresult releasePrimary(CUresult (*FunctionTable::*release)(CUdevice), CUdevice device) {
  const Entry entry;
  const CUcontext context = entry.opens() && contexts().any() ? primaryOf(entry, device) : nullptr;
  const CUresult result = entry.pass(release, device);
  if (result == CUDA_SUCCESS && context != nullptr && primaryOf(entry, device) == nullptr)
    contexts().afterEnd(context);
  return result;
}

}  // namespace

// Programs that were built with a CUDA before 11 call the ones without a number.
CISTERN_HOOK CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return resetPrimary(&Functions::cuDevicePrimaryCtxReset, device);
}
CISTERN_HOOK CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  return resetPrimary(&Functions::cuDevicePrimaryCtxReset_v2, device);
}
CISTERN_HOOK CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return releasePrimary(&Functions::cuDevicePrimaryCtxRelease, device);
}
CISTERN_HOOK CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return releasePrimary(&Functions::cuDevicePrimaryCtxRelease_v2, device);
}

// The current context may use the peer's memory from now on: its present memory, and all that is
// still to come.
CISTERN_HOOK CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  const Entry entry;
  const CUresult result = entry.pass(&Functions::cuCtxEnablePeerAccess, peer, flags);
  if (result == CUDA_SUCCESS && entry.serves()) {
    CUdevice device = 0;
    if (entry.pass(&Functions::cuCtxGetDevice, &device) == CUDA_SUCCESS)
      contexts().admit(peer, device);
  }
  return result;
}
