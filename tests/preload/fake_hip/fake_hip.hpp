// What programs of the tests ask of the fake HIP runtime beyond what HIP has. They take it by
// dlsym.
//
// AMD's own runtime serves the same programs in tests/hip/run. This one is kept because it has
// virtual time and a race detector, counts each call, and has the pools and functions that came
// after HIP 5.2.
#pragma once

#include <hip/hip_runtime_api.h>

extern "C" {
/// Queues work that touches a range for so long. Whoever stands before the runtime cannot know it.
/// hipModuleLaunchKernel does the same, with four parameters: the address, the bytes, whether it
/// writes, and how long it takes.
hipError_t hipFakeLaunch(hipStream_t stream, void* address, size_t bytes,
                         unsigned long long nanoseconds);
/// hipStreamWaitEvent, which FAKE_FORGETS_WAITS in the environment does not take away.
hipError_t hipFakeWaitEvent(hipStream_t stream, hipEvent_t event);
/// How many races and accesses to what is not there were found since the last call, on all devices.
unsigned hipFakeRaces(void);
/// Calls of the runtime's function of that name so far; of "": of all that are counted.
unsigned long long hipFakeCalls(const char* name);
/// Calls `call` once, as the next call of that function begins, which has done nothing yet.
void hipFakeDuring(const char* name, void (*call)(void));
/// Virtual time of the current device, in ns.
unsigned long long hipFakeNow(void);
}
