// No thread is refused memory that another has in hand, on its way from the system or back there.
#include <atomic>
#include <memory>
#include <thread>

#include "cistern/pinned.hpp"
#include "cistern/sim.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/interposed_device.hpp"

namespace cistern::test {

TEST_CASE("no thread is refused pinned memory that another gives back", "[pinned][threads]") {
  constexpr std::size_t kBytes = 4 * kMiB;
  std::atomic<bool> met{false}, begun{false}, served{false};
  const std::unique_ptr<sim::SimulatedDevice> sim = sim::makeDevice();
  InterposedDevice device(*sim);
  PinnedAllocator pinned(device);
  pinned.setLimit(kBytes);
  pinned.free(pinned.allocate(kBytes));

  std::thread other;
  const auto request = [&] {
    begun = true;
    try {
      pinned.free(pinned.allocate(kBytes));
      served = true;
    } catch (const OutOfPinnedMemory&) {
    }
  };
  device.before = [&](Call call) {
    if (call != Call::kHostFree || met.exchange(true)) return;
    other = std::thread(request);
    while (!begun) std::this_thread::yield();
    for (int i = 0; i < 1'000; ++i) std::this_thread::yield();
  };
  pinned.emptyCache();
  other.join();
  CHECK(served);
  pinned.audit();
}

}  // namespace cistern::test
