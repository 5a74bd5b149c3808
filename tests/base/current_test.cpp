#include <thread>
#include <utility>

#include "allocator/base/current_device.hpp"
#include "cistern/error.hpp"
#include "tests/support/catch.hpp"

using namespace cistern;

namespace {

// A vendor with two devices, current for each thread on its own. Registered for the whole program,
// as a vendor is; absent until a test says that it has devices.
struct FakeVendor {
  static inline int devices = 0;
  static inline thread_local int current = 0;

  static int ask() noexcept { return devices == 0 ? -1 : current; }
  static std::uintptr_t enter(int ordinal) {
    if (ordinal >= devices) throw Error("fake vendor: no such device");
    return std::uintptr_t(std::exchange(current, ordinal));
  }
  static void leave(std::uintptr_t before) noexcept { current = int(before); }

  static constexpr DeviceSwitch kSwitch{ask, enter, leave};

  explicit FakeVendor(int count) {
    devices = count;
    current = 0;
    addDeviceSwitch(kSwitch);
  }
  ~FakeVendor() { devices = 0; }
};

// A second one, asked after the first: it has more devices.
struct OtherVendor {
  static inline int entered = -1;
  static int ask() noexcept { return FakeVendor::devices == 0 ? -1 : entered; }
  static std::uintptr_t enter(int ordinal) {
    if (ordinal == 7) throw Error("other vendor: no device 7");
    return std::uintptr_t(std::exchange(entered, ordinal));
  }
  static void leave(std::uintptr_t before) noexcept { entered = int(before); }
  static constexpr DeviceSwitch kSwitch{ask, enter, leave};
};

}  // namespace

TEST_CASE("without guards and vendors the device is 0 and the stream the default one",
          "[current]") {
  CHECK(currentDevice() == 0);
  CHECK(currentStream() == Stream{});
  CHECK(currentStream(63) == Stream{});
}

TEST_CASE("stream guards nest, for each device and thread on its own", "[current]") {
  const StreamGuard outer(Stream{1});
  {
    const StreamGuard inner(Stream{2});
    const StreamGuard elsewhere(Stream{3}, 5);
    CHECK(currentStream() == Stream{2});
    CHECK(currentStream(5) == Stream{3});
    Stream other_thread{9};
    std::thread([&] { other_thread = currentStream(); }).join();
    CHECK(other_thread == Stream{});
  }
  CHECK(currentStream() == Stream{1});
  CHECK(currentStream(5) == Stream{});
}

TEST_CASE("a device guard says which stream is current", "[current]") {
  const StreamGuard here(Stream{1}, 0);
  const StreamGuard there(Stream{2}, 4);
  CHECK(currentStream() == Stream{1});
  {
    const DeviceGuard guard(4);
    CHECK(currentDevice() == 4);
    CHECK(currentStream() == Stream{2});
    const DeviceGuard inner(0);
    CHECK(currentStream() == Stream{1});
  }
  CHECK(currentDevice() == 0);
}

TEST_CASE("ordinals out of range change nothing", "[current]") {
  CHECK_THROWS_AS(DeviceGuard(-1), InvalidArgument);
  CHECK_THROWS_AS(DeviceGuard(kMaxDevices), InvalidArgument);
  CHECK_THROWS_AS(StreamGuard(Stream{1}, kMaxDevices), InvalidArgument);
  CHECK_THROWS_AS(currentStream(-1), InvalidArgument);
  CHECK(currentDevice() == 0);
}

TEST_CASE("the vendor's current device counts, until a guard says otherwise", "[current]") {
  const FakeVendor vendor(2);
  FakeVendor::current = 1;  // the program's own call to the vendor
  CHECK(currentDevice() == 1);
  {
    const DeviceGuard guard(0);
    CHECK(FakeVendor::current == 0);
    CHECK(currentDevice() == 0);
  }
  CHECK(FakeVendor::current == 1);
  CHECK(currentDevice() == 1);
}

TEST_CASE("a guard for a device that a vendor lacks throws and changes nothing", "[current]") {
  const FakeVendor vendor(2);
  CHECK_THROWS_WITH(DeviceGuard(2), "fake vendor: no such device");
  CHECK(FakeVendor::current == 0);
  CHECK(currentDevice() == 0);
}

TEST_CASE("when a later vendor refuses, the earlier one is set back", "[current]") {
  const FakeVendor vendor(8);
  OtherVendor::entered = 0;
  addDeviceSwitch(OtherVendor::kSwitch);
  {
    const DeviceGuard guard(3);
    CHECK(FakeVendor::current == 3);
    CHECK(OtherVendor::entered == 3);
  }
  CHECK(OtherVendor::entered == 0);
  CHECK_THROWS_WITH(DeviceGuard(7), "other vendor: no device 7");
  CHECK(FakeVendor::current == 0);
  CHECK(OtherVendor::entered == 0);
  CHECK(currentDevice() == 0);
}
