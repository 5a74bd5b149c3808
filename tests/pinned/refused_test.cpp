// No thread is refused memory that another has in hand, on its way from the system or back there.
#include <memory>

#include "cistern/pinned.hpp"
#include "cistern/sim.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/meanwhile.hpp"

namespace cistern::test {

TEST_CASE("no thread is refused pinned memory that another gives back", "[pinned][threads]") {
  constexpr std::size_t kBytes = 4 * kMiB;
  const std::unique_ptr<sim::SimulatedDevice> sim = sim::makeDevice();
  InterposedDevice device(*sim);
  PinnedAllocator pinned(device);
  pinned.setLimit(kBytes);
  pinned.free(pinned.allocate(kBytes));

  bool served = false;
  Meanwhile request(device, Call::kHostFree, [&] {
    try {
      pinned.free(pinned.allocate(kBytes));
      served = true;
    } catch (const OutOfPinnedMemory&) {
    }
  });
  pinned.emptyCache();
  CHECK(request.wait());
  CHECK(served);
  pinned.audit();
}

}  // namespace cistern::test
