// The fake HIP runtime, over devices of ../fake_device: a thread has a current device, 0 at first,
// and the last failure of its calls. hipErrorNotReady counts as one, as in older versions of HIP.
#pragma once

#include "tests/preload/fake_device/fake_device.hpp"
#include "tests/preload/fake_hip/fake_hip.hpp"

#define FAKE extern "C" __attribute__((visibility("default")))

namespace fake {

Device& current();
/// Keeps it, if it is a failure.
hipError_t answer(int code);
/// The failure of a call that a capture of this thread forbids, which breaks it.
int captureSays();

inline Handle handleOf(hipStream_t stream) { return reinterpret_cast<Handle>(stream); }

}  // namespace fake
