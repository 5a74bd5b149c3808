// HIP's runtime is found when a program runs: where a variable names it, in ROCm's folder, where
// the loader looks, and in the process. What is found is a copy of AMD's runtime that lacks a few
// functions (without_functions.py), so that it cannot be taken for the one that is installed. A
// process looks for it once, so the build runs this program once for each place.
#include <string>

#include <dlfcn.h>
#include <hip/hip_runtime_api.h>

#include "allocator/device/vendor/vendor.hpp"
#include "cistern/current.hpp"
#include "cistern/device.hpp"
#include "handles/vendor/runtime.hpp"
#include "tests/support/catch.hpp"

using namespace cistern;
using Catch::Matchers::ContainsSubstring;

namespace {

std::unique_ptr<Device> foundDevice() {
  std::unique_ptr<Device> device = openDevice("hip", 1);
  REQUIRE_THAT(hip::kTableEntry.runtime(), Catch::Matchers::EndsWith(", " CISTERN_COPY_OF_HIP));
  return device;
}

void requireMissing(const DeviceError& error, const std::string& function) {
  CHECK(error.kind == ErrorKind::kNotSupported);
  CHECK(error.code == 801);
  CHECK(error.name == std::string("hipErrorNotSupported"));
  CHECK(error.detail == CISTERN_COPY_OF_HIP " has no " + function);
}

/// A function of the copy, which the program is not linked with.
template <class Function>
Function* inTheCopy(const char* name) {
  void* const library = dlopen(CISTERN_COPY_OF_HIP, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  auto* const found = reinterpret_cast<Function*>(dlsym(library, name));
  REQUIRE(found != nullptr);
  return found;
}

}  // namespace

TEST_CASE("calls reach the library that was found", "[found]") {
  const auto device = foundDevice();
  CHECK(hip::deviceCount().orThrow() == 2);
  const std::size_t total = device->memoryInfo().orThrow().total_bytes;
  const Address memory = device->malloc(4096).orThrow();
  hipPointerAttribute_t attributes{};
  const auto attributesOf = inTheCopy<decltype(hipPointerGetAttributes)>("hipPointerGetAttributes");
  REQUIRE(attributesOf(&attributes, reinterpret_cast<void*>(memory)) == hipSuccess);
  CHECK(attributes.device == 1);
  const DeviceError refused = device->malloc(2 * total).error();
  CHECK(refused.kind == ErrorKind::kOutOfMemory);
  CHECK(refused.detail == "hipErrorOutOfMemory");  // the runtime's text
  CHECK(!hip::open(2).ok());
}

TEST_CASE("a function that the library lacks is not supported, by its name", "[found]") {
  const auto device = foundDevice();
  requireMissing(device->createStream().error(), "hipStreamCreateWithFlags");
  requireMissing(device->dumpGraph(DeviceGraph{}, "graph.dot").error(), "hipGraphDebugDotPrint");
}

TEST_CASE("a library without virtual memory or pools opens as a device without", "[found]") {
  const auto device = foundDevice();
  CHECK(!device->virtualMemory().supported);
  CHECK(!device->driverPoolSupported());
  requireMissing(device->reserve(4096).error(), "hipMemAddressReserve");
}

TEST_CASE("a peer that the program has admitted itself leaves no last error", "[found]") {
  const auto device = foundDevice();
  const auto enable = inTheCopy<decltype(hipDeviceEnablePeerAccess)>("hipDeviceEnablePeerAccess");
  const auto lastError = inTheCopy<decltype(hipGetLastError)>("hipGetLastError");
  const DeviceGuard guard(0);
  CHECK(enable(1, 0) == hipSuccess);
  CHECK(enable(1, 0) == hipErrorPeerAccessAlreadyEnabled);
  CHECK(lastError() == hipErrorPeerAccessAlreadyEnabled);
  CHECK(device->admitPeer(0).ok());
  CHECK(foundDevice()->admitPeer(0).ok());
  CHECK(lastError() == hipSuccess);
}

TEST_CASE("handles are created on the same library's devices", "[found]") {
  const DeviceSwitch& devices = hip::runtime().devices;
  CHECK(devices.current() == 0);
  const std::uintptr_t before = devices.enter(1);
  CHECK(devices.current() == 1);
  int device = -1;
  CHECK(inTheCopy<decltype(hipGetDevice)>("hipGetDevice")(&device) == hipSuccess);
  CHECK(device == 1);
  devices.leave(before);
  CHECK(devices.current() == 0);
  CHECK_THROWS_WITH(devices.enter(2), ContainsSubstring("hipErrorInvalidDevice"));
}

TEST_CASE("a runtime that the program has loaded is the one that is used", "[loaded]") {
  REQUIRE(dlopen(CISTERN_COPY_OF_HIP, RTLD_NOW | RTLD_LOCAL) != nullptr);
  CHECK(foundDevice()->ordinal() == 1);
}
