// What the vendor backends say on a machine without a device, and what opening one finds.
#include "allocator/base/bytes.hpp"
#include "allocator/device/open.hpp"
#include "allocator/device/vendor/absent.hpp"
#include "cistern/device.hpp"
#include "cistern/error.hpp"
#include "tests/gpu/vendors.hpp"
#include "tests/support/catch.hpp"

using namespace cistern;
using namespace cistern::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The message of what openDevice throws, which must be a `Failure`.
template <class Failure>
std::string refusal(std::string_view backend, int ordinal) {
  try {
    openDevice(backend, ordinal);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "nothing was thrown";
}

bool anyDevice() {
  for (const Backend& vendor : vendors()) {
    if (vendor.deviceCount()) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a backend without a device says why, each time it is asked") {
  for (const Backend& vendor : vendors()) {
    INFO(vendor.name);
    for (int round = 0; round < 2; ++round) {
      const Result<int> count = vendor.deviceCount();
      if (count.ok()) continue;
      CHECK(count.error().call == Call::kOpen);
      CHECK(count.error().kind ==
            (vendor.compiled_in ? ErrorKind::kNoDevice : ErrorKind::kNotSupported));
      CHECK(!count.error().detail.empty());
      CHECK_THAT(count.error().message(), ContainsSubstring("open failed"));
      const auto opened = vendor.open(0);
      REQUIRE(!opened.ok());
      CHECK(opened.error().message() == count.error().message());
    }
  }
}

TEST_CASE("an ordinal that the machine does not have is refused") {
  for (const Backend& vendor : vendors()) {
    INFO(vendor.name);
    CHECK(!vendor.open(-1).ok());
    CHECK(!vendor.open(4096).ok());
    CHECK_THAT(refusal<InvalidArgument>(vendor.name, -1), ContainsSubstring("-1"));
    const Result<int> count = vendor.deviceCount();
    if (!count.ok()) continue;
    CHECK(vendor.open(count.value()).error().kind == ErrorKind::kNoDevice);
    const std::string text = refusal<InvalidArgument>(vendor.name, count.value());
    CHECK_THAT(text, ContainsSubstring("must be 0 to " + std::to_string(count.value() - 1)));
  }
}

TEST_CASE("an unknown backend is refused by name, with the ones that there are") {
  const std::string text = refusal<InvalidArgument>("metal", 0);
  CHECK_THAT(text, ContainsSubstring("metal"));
  for (const char* allowed : {"auto", "cuda", "hip", "sim"})
    CHECK_THAT(text, ContainsSubstring(allowed));
  CHECK_THAT(refusal<InvalidArgument>("", 0), ContainsSubstring("unknown backend"));
}

TEST_CASE("asking for a vendor that the machine lacks is a device failure") {
  for (const Backend& vendor : vendors()) {
    if (vendor.deviceCount().ok()) continue;
    CHECK_THAT(refusal<DeviceFailure>(vendor.name, 0), ContainsSubstring("open failed"));
  }
}

TEST_CASE("auto is the simulated device exactly where there is no GPU") {
  CHECK((openDevice("auto", 0)->backend() == "sim") == !anyDevice());
  CHECK(openDevice("sim", 3)->ordinal() == 3);
  CHECK_THAT(refusal<InvalidArgument>("sim", 8), ContainsSubstring("must be 0 to 7"));
}

TEST_CASE("the simulated device says whether the build or the machine has no GPU") {
  Backend vendor = vendors()[0];
  const Backend simulated = *findBackend("sim");
  vendor.compiled_in = true;
  CHECK(whySimulated({&vendor, &simulated}) == "no GPU is found here");
  vendor.compiled_in = false;
  const std::string what_to_do =
      "Cistern was built without CUDA and HIP: install the CUDA toolkit 13 or HIP's headers and "
      "run the command again that built it";
  CHECK(whySimulated({&vendor, &simulated}) == what_to_do);
  CHECK(whySimulated({&simulated}) == what_to_do);
}

TEST_CASE("a backend that was not built in says what to install, and names no option of CMake") {
  const std::string text = notBuiltIn("CUDA", kCudaSdk).message();
  CHECK_THAT(text, ContainsSubstring("built without CUDA: install the CUDA toolkit 13 and run"));
  CHECK_THAT(text, !ContainsSubstring("-D"));
}

TEST_CASE("an opened device knows what it is", "[gpu]") {
  for (const auto& device : presentDevices()) {
    INFO(device->backend());
    CHECK(!device->name().empty());
    CHECK(device->ordinal() == 0);
    CHECK(device->canAccessPeer(0).orThrow());
    const MemoryInfo memory = device->memoryInfo().orThrow();
    CHECK(memory.free_bytes > 0);
    CHECK(memory.free_bytes <= memory.total_bytes);
    const VirtualMemoryCapability virtual_memory = device->virtualMemory();
    if (virtual_memory.supported) CHECK(virtual_memory.granularity % (4 * kKiB) == 0);
    if (device->backend() == "cuda") CHECK(virtual_memory.granularity == 2 * kMiB);
  }
}
