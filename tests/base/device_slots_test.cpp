#include "allocator/base/device_slots.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include "cistern/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/threads.hpp"

using namespace cistern;

TEST_CASE("a device's slot is made once, when it is first asked for", "[slots]") {
  DeviceSlots<std::vector<int>> slots;
  CHECK(slots.find(3) == nullptr);
  std::vector<int>& made = slots.at(3);
  made.push_back(7);
  CHECK(slots.find(3) == &made);
  CHECK(&slots.at(3) == &made);
  CHECK(slots.find(2) == nullptr);
}

TEST_CASE("an ordinal out of range is refused with its value and the range", "[slots]") {
  DeviceSlots<int> slots;
  CHECK_THROWS_WITH(slots.at(-1), "device ordinal -1: must be 0 to 63");
  CHECK_THROWS_AS(slots.at(kMaxDevices), InvalidArgument);
  CHECK_THROWS_AS(slots.find(kMaxDevices), InvalidArgument);
  CHECK(slots.at(kMaxDevices - 1) == 0);
}

TEST_CASE("a visit sees each device that has a slot, in order", "[slots]") {
  DeviceSlots<int> slots;
  for (int ordinal : {5, 0, 63}) slots.at(ordinal) = 10 * ordinal;
  std::vector<int> seen;
  slots.forEach([&](int ordinal, int& value) {
    CHECK(value == 10 * ordinal);
    seen.push_back(ordinal);
  });
  CHECK(seen == std::vector<int>{0, 5, 63});
}

TEST_CASE("threads that ask at once share one slot for each device", "[slots]") {
  static std::atomic<int> made{0};
  struct Counted {
    Counted() { ++made; }
    std::atomic<int> uses{0};
  };
  DeviceSlots<Counted> slots;
  test::onThreads(8, [&] {
    for (int i = 0; i < 1000; ++i) ++slots.at(i % kMaxDevices).uses;
  });
  int uses = 0;
  slots.forEach([&](int, Counted& one) { uses += one.uses; });
  CHECK(uses == 8000);
  CHECK(made == kMaxDevices);
}

TEST_CASE("a thread that comes while another makes a slot has that one", "[slots]") {
  static std::atomic<int> made{0}, came{0};
  struct Slow {
    Slow() {
      ++made;
      while (came < 2) std::this_thread::yield();
      for (int i = 0; i < 10'000; ++i) std::this_thread::yield();  // the other waits for the lock
    }
  };
  DeviceSlots<Slow> slots;
  test::onThreads(2, [&] {
    ++came;
    (void)slots.at(0);
  });
  CHECK(made == 1);
}
