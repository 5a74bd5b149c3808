// Every library of one vendor on a machine without a GPU.
#include "cistern/current.hpp"
#include "tests/handles/bound/fake_vendor.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {

TEST_CASE("without a device each getter says so", "[bound]") {
  FakeRuntime::devices = 0;
  for (const BoundLibrary& library : boundLibraries()) {
    INFO(library.name);
    std::string what;
    const DeviceGuard guard(5);  // of which no thread has a handle yet
    try {
      (void)library.get();
    } catch (const Error& error) {
      what = error.what();
    }
    CHECK(what == "no usable fake GPU");
  }
  FakeRuntime::devices = FakeRuntime::kDevices;
}

}  // namespace cistern::test
