// What programs of the tests ask of the fake driver beyond what a driver has. The real one has none
// of it: a program that is to run on both takes these by dlsym.
#pragma once

#include <cuda.h>

extern "C" {
/// Queues work that touches a range for so long. Refused as the driver refuses a launch. Whoever
/// stands before the driver cannot know it. cuLaunchKernel does the same, with four parameters: the
/// address, the bytes, whether it writes, and how long it takes.
CUresult cuFakeLaunch(CUstream stream, const char* name, CUdeviceptr address, size_t bytes,
                      int writes, unsigned long long nanoseconds);
/// cuStreamWaitEvent, which FAKE_FORGETS_WAITS in the environment does not take away.
CUresult cuFakeWaitEvent(CUstream stream, CUevent event, unsigned flags);
/// How many races and accesses to what is not there were found so far, on all devices; each is
/// printed to stderr when it is found out.
unsigned cuFakeRaces(void);
/// Calls of the driver's function of that name so far ("cuMemAlloc", "cuMemCreate"), or of all that
/// are counted (""); from anywhere.
unsigned long long cuFakeCalls(const char* name);
/// Calls `call` once, as the next call of that function begins, which has done nothing yet.
void cuFakeDuring(const char* name, void (*call)(void));
/// Virtual time of the current context's device, in ns.
unsigned long long cuFakeNow(void);
}
