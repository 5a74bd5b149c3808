// What the simulated device says of streams that are not alive.
#include "tests/device/sim_support.hpp"

namespace cistern::test {

TEST_CASE("a simulated device counts the calls that name a stream that is not alive", "[device]") {
  SimDevice device;
  const Stream stream = newStream(device);
  const Event event = recorded(device, stream);
  (void)device.captureInfo(stream);
  device.destroyStream(stream).orThrow();
  CHECK(device.callsOnDeadStreams() == 0);
  CHECK(device.queryEvent(event).ok());
  CHECK(!device.queryStream(stream).ok());
  CHECK(!device.captureInfo(stream).ok());
  CHECK(!device.recordEvent(event, stream).ok());
  CHECK(!device.waitEvent(stream, event).ok());
  CHECK(!device.destroyStream(stream).ok());
  CHECK(device.callsOnDeadStreams() == 5);
}

TEST_CASE("a simulated device gives a destroyed stream's handle to the next only if told to",
          "[device]") {
  for (const bool reuse : {false, true}) {
    SimConfig config;
    config.reuse_streams = reuse;
    SimDevice device(config);
    const Stream old = newStream(device), kept = newStream(device);
    launchEndless(device, old);
    device.destroyStream(old).orThrow();
    const Stream young = newStream(device);
    CHECK((young == old) == reuse);
    CHECK(newStream(device) != kept);
    CHECK(device.queryStream(young).orThrow());  // it has no work of the old one's
  }
}

}  // namespace cistern::test
