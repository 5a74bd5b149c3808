// HIP's runtime is found when a program runs: where there is none, where one is, and where one
// lacks functions. A process looks for it once, so the build runs this program once for each tag,
// with the environment that the cases of the tag are about.
#include <cstdlib>
#include <filesystem>

#include <dlfcn.h>
#include <sys/stat.h>

#include "allocator/device/vendor/vendor.hpp"
#include "cistern/device.hpp"
#include "handles/vendor/runtime.hpp"
#include "tests/gpu/hip/fake_runtime.hpp"
#include "tests/support/catch.hpp"

using namespace cistern;
using namespace cistern::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string refusal() {
  try {
    openDevice("hip");
  } catch (const DeviceFailure& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

std::unique_ptr<Device> fakeDevice() {
  std::unique_ptr<Device> device = openDevice("hip", 1);
  REQUIRE(device->name() == "fake");
  return device;
}

void requireMissing(const DeviceError& error, const std::string& function) {
  CHECK(error.kind == ErrorKind::kNotSupported);
  CHECK(error.code == 801);
  CHECK(error.name == std::string("hipErrorNotSupported"));
  CHECK_THAT(error.detail, ContainsSubstring("has no " + function));
}

}  // namespace

// ---- No library
// -----------------------------------------------------------------------------------

TEST_CASE("without a library there is no device, and the text says what was looked for", "[none]") {
  const Result<int> count = hip::deviceCount();
  REQUIRE(!count.ok());
  CHECK(hip::kTableEntry.compiled_in);
  CHECK(count.error().kind == ErrorKind::kNoDevice);
  CHECK(count.error().code == 100);
  CHECK_THAT(refusal(), ContainsSubstring("hipErrorNoDevice"));
  CHECK_THAT(refusal(), ContainsSubstring("no usable AMD GPU"));
  CHECK_THAT(refusal(), ContainsSubstring(std::getenv("CISTERN_HIP_LIBRARY")));
  CHECK_THAT(refusal(), ContainsSubstring("no such file"));
}

TEST_CASE("without a library auto goes on", "[none]") {
  CHECK(openDevice("auto")->backend() != "hip");
}

TEST_CASE("without a library a handle's creation says what opening a device does", "[none]") {
  CHECK(hip::runtime().devices.current() == -1);
  CHECK(hip::runtime().computeMajor(0) == 0);
  CHECK(hip::runtime().relaxCapture() == -1);
  CHECK_THROWS_WITH(handles::CreationScope(hip::runtime(), 0),
                    ContainsSubstring(std::getenv("CISTERN_HIP_LIBRARY")));
}

TEST_CASE("what is no library is not loaded, and the loader's reason is told", "[broken]") {
  CHECK_THAT(refusal(), ContainsSubstring("cannot be loaded"));
  CHECK_THAT(refusal(), !ContainsSubstring("no such file"));
}

TEST_CASE("what is no regular file is named, and not opened", "[pipe]") {
  const std::string path = std::getenv("CISTERN_HIP_LIBRARY");
  std::filesystem::remove(path);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);  // the loader would wait for its writer
  CHECK_THAT(refusal(), ContainsSubstring(path + " is a named pipe: must be a regular file"));
}

// ---- A library
// -------------------------------------------------------------------------------------

TEST_CASE("calls reach the library that was found", "[fake]") {
  const auto device = fakeDevice();
  CHECK_THAT(hip::kTableEntry.runtime(), ContainsSubstring("libamdhip64.so"));
  CHECK(hip::deviceCount().orThrow() == 2);
  const Address first = device->malloc(4096).orThrow();
  CHECK(device->malloc(4096).orThrow() == first + 4096);
  CHECK(first >= kFakeAddress);
  CHECK(device->memoryInfo().orThrow().total_bytes == kFakeMemory);
  CHECK(device->malloc(2 * kFakeMemory).error().kind == ErrorKind::kOutOfMemory);
  CHECK(device->malloc(2 * kFakeMemory).error().detail == "the fake runtime's text");
  CHECK(!hip::open(2).ok());
}

TEST_CASE("a function that the library lacks is not supported, by its name", "[fake]") {
  const auto device = fakeDevice();
  requireMissing(device->free(kFakeAddress).error(), "hipFree");
  requireMissing(device->createStream().error(), "hipStreamCreateWithFlags");
  requireMissing(device->dumpGraph(DeviceGraph{}, "graph.dot").error(), "hipGraphDebugDotPrint");
  CHECK(device->malloc(2 * kFakeMemory).error().detail == "the fake runtime's text");
}

TEST_CASE("a library without virtual memory or pools opens as a device without", "[fake]") {
  const auto device = fakeDevice();
  CHECK(!device->virtualMemory().supported);
  CHECK(!device->driverPoolSupported());
  requireMissing(device->reserve(4096).error(), "hipMemAddressReserve");
}

TEST_CASE("a peer that the program has admitted itself leaves no last error", "[fake]") {
  const auto device = fakeDevice();
  void* const library = dlopen(CISTERN_FAKE_HIP, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto lastError = reinterpret_cast<int (*)()>(dlsym(library, "hipPeekAtLastError"));
  CHECK(device->admitPeer(0).ok());
  CHECK(device->admitPeer(0).ok());
  CHECK(fakeDevice()->admitPeer(0).ok());
  CHECK(lastError() == 0);
  dlclose(library);
}

TEST_CASE("handles are created on the same library's devices", "[fake]") {
  const DeviceSwitch& devices = hip::runtime().devices;
  CHECK(devices.current() == 0);
  const std::uintptr_t before = devices.enter(1);
  CHECK(devices.current() == 1);
  devices.leave(before);
  CHECK(devices.current() == 0);
  CHECK_THROWS_WITH(devices.enter(2), ContainsSubstring("the fake runtime's text"));
}

TEST_CASE("a runtime that the program has loaded is the one that is used", "[loaded]") {
  REQUIRE(dlopen(CISTERN_FAKE_HIP, RTLD_NOW | RTLD_LOCAL) != nullptr);
  CHECK(fakeDevice()->ordinal() == 1);
}
