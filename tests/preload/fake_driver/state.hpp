// The fake driver's contexts, over devices of ../fake_device.
#pragma once

#include "tests/preload/fake_device/fake_device.hpp"
#include "tests/preload/fake_driver/fake_driver.hpp"

#define FAKE extern "C" __attribute__((visibility("default")))

struct CUctx_st {
  int ordinal = 0;
  bool primary = false;
};

namespace fake {

/// The device of the calling thread's context.
Device& current();
CUcontext currentContext();
/// Whether a page of the host's memory is mapped there.
bool liesOnHost(CUdeviceptr address);

inline Handle handleOf(CUstream stream) { return reinterpret_cast<Handle>(stream); }

}  // namespace fake

/// The driver's function begins: it is counted, and refused without a context.
#define FAKE_BEGIN(name) \
  fake::count(name);     \
  if (fake::currentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT
