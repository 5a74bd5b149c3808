// Devices, failures, and the look-up by hipGetProcAddress.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include <dlfcn.h>

#include "tests/preload/fake_hip/state.hpp"

namespace fake {
namespace {

thread_local int current_device = 0;
thread_local hipError_t last = hipSuccess;

}  // namespace

Device& current() { return device(current_device); }

hipError_t answer(int code) {
  const auto result = hipError_t(code);
  if (result != hipSuccess) last = result;
  return result;
}

int captureSays() {
  const cistern::Event event = current().sim->createEvent().orThrow();
  const int code = codeOf(current().sim->queryEvent(event));
  (void)current().sim->destroyEvent(event);
  return code == hipErrorNotReady ? 0 : code;
}

}  // namespace fake

using namespace fake;

FAKE hipError_t hipGetDeviceCount(int* n) { return *n = kDevices, hipSuccess; }
FAKE hipError_t hipGetDevice(int* device) { return *device = current_device, hipSuccess; }
FAKE hipError_t hipSetDevice(int device) {
  if (device < 0 || device >= kDevices) return answer(hipErrorInvalidDevice);
  return current_device = device, hipSuccess;
}
FAKE hipError_t hipDeviceGetName(char* name, int length, hipDevice_t) {
  std::snprintf(name, std::size_t(length), "fake device");
  return hipSuccess;
}
FAKE hipError_t hipDeviceCanAccessPeer(int* can, int a, int b) { return *can = a != b, hipSuccess; }
FAKE hipError_t hipDeviceEnablePeerAccess(int, unsigned) { return hipSuccess; }
FAKE hipError_t hipRuntimeGetVersion(int* version) {
  const char* const given = std::getenv("FAKE_HIP_VERSION");
  return *version = given == nullptr ? 70'200'000 : std::atoi(given), hipSuccess;
}
FAKE hipError_t hipDeviceSynchronize() {
  count("hipDeviceSynchronize");
  const hipError_t result = answer(codeOf(current().sim->synchronizeDevice()));
  count("the end of hipDeviceSynchronize");
  return result;
}
FAKE hipError_t hipDeviceReset() {
  count("hipDeviceReset");
  reset(current());
  return hipSuccess;
}

// ---- Failures -----------------------------------------------------------------------------------

FAKE const char* hipGetErrorName(hipError_t) { return "an error of the fake runtime"; }
FAKE hipError_t hipGetLastError() { return std::exchange(last, hipSuccess); }
FAKE hipError_t hipPeekAtLastError() { return last; }
extern "C" hipError_t extGetLastError() __asm__("hipExtGetLastError");
FAKE hipError_t extGetLastError() { return std::exchange(last, hipSuccess); }

// ---- Looking up ---------------------------------------------------------------------------------

namespace {

hipError_t find(const char* name, void** out, bool per_thread) {
  // Not by name in this process: another library may stand before this one there.
  static void* const self = [] {
    Dl_info where{};
    dladdr(reinterpret_cast<void*>(&find), &where);
    return dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  using Look = void* (*)(void*, const char*);
  static const auto look = reinterpret_cast<Look>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"));
  *out = per_thread ? look(self, (std::string(name) + "_spt").c_str()) : nullptr;
  if (*out == nullptr) *out = look(self, name);
  return answer(*out == nullptr ? hipErrorInvalidValue : hipSuccess);
}

}  // namespace

extern "C" {
hipError_t getProcAddress(const char*, void**, int, uint64_t, void*) __asm__("hipGetProcAddress");
hipError_t getProcAddressSpt(const char*, void**, int, uint64_t,
                             void*) __asm__("hipGetProcAddress_spt");
hipError_t getEntryPoint(const char*, void**, unsigned long long,
                         void*) __asm__("hipGetDriverEntryPoint");
}
FAKE hipError_t getProcAddress(const char* name, void** out, int, uint64_t flags, void*) {
  return find(name, out, flags == 2);
}
FAKE hipError_t getProcAddressSpt(const char* name, void** out, int, uint64_t, void*) {
  return find(name, out, true);
}
FAKE hipError_t getEntryPoint(const char* name, void** out, unsigned long long flags, void*) {
  return find(name, out, flags == 2);
}

// ---- What only a fake has -----------------------------------------------------------------------

FAKE unsigned hipFakeRaces() { return races(); }
FAKE unsigned long long hipFakeCalls(const char* name) { return counted(name); }
FAKE void hipFakeDuring(const char* name, void (*call)()) { callDuring(name, call); }
FAKE unsigned long long hipFakeNow() { return current().sim->now(); }
