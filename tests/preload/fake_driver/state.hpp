// The fake driver's devices and contexts. Each device is a simulated one; handles are its handles.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cistern/sim.hpp"
#include "tests/preload/fake_driver/fake_driver.hpp"

#define FAKE extern "C" __attribute__((visibility("default")))

struct CUctx_st {
  int ordinal = 0;
  bool primary = false;
};

namespace fake {

using cistern::Stream;

constexpr int kDevices = 2;

/// Whatever a device's streams need to behave as CUDA's: which synchronise with the legacy stream.
struct Device {
  std::unique_ptr<cistern::sim::SimulatedDevice> sim;
  std::recursive_mutex mutex;
  std::set<std::uintptr_t> blocking;  ///< streams that synchronise with the legacy one
  std::set<std::uintptr_t> nonblocking;
  std::map<std::uint64_t, std::uint64_t> allocated;  ///< plain memory: address, bytes
  CUctx_st primary{};
  int retained = 0;
};

Device& device(int ordinal);
/// That of the calling thread's context.
Device& current();
CUcontext currentContext();
CUresult count(const char* name);
unsigned long long counted(const std::string& name);

/// The simulated stream that a handle names; made for the thread where it is its own default one.
Stream streamOf(Device& device, CUstream stream, bool per_thread = false);
/// Runs `call` on the stream with the order that CUDA gives it: the legacy stream comes after those
/// that synchronise with it, and they after it.
CUresult inOrder(Device& device, Stream stream, CUresult (*call)(void*), void* argument);
template <class Call>
CUresult inOrder(Device& device, Stream stream, Call call) {
  return inOrder(
      device, stream, [](void* what) { return (*static_cast<Call*>(what))(); }, &call);
}

inline CUresult codeOf(const cistern::DeviceError& error) { return CUresult(error.code); }
template <class T>
CUresult codeOf(const cistern::Result<T>& result) {
  return result.ok() ? CUDA_SUCCESS : codeOf(result.error());
}

}  // namespace fake

/// The driver's function begins: it is counted, and refused without a context.
#define FAKE_BEGIN(name) \
  fake::count(name);     \
  if (fake::currentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT
