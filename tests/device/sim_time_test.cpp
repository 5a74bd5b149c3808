// The simulated device's clock: what calls cost, how far work lags, what waiting does.
#include "allocator/device/sim/costs.hpp"
#include "tests/device/sim_support.hpp"

namespace cistern::test {

TEST_CASE("a call moves the clock on by what it costs, and is on the account", "[sim][time]") {
  SimDevice device;
  const Address memory = device.malloc(kPage).orThrow();
  CHECK(device.now() == sim::cost::malloc(kPage));
  device.free(memory).orThrow();
  const Event event = device.createEvent().orThrow();
  device.recordEvent(event, Stream{}).orThrow();
  const std::uint64_t calls = sim::cost::malloc(kPage) + sim::cost::free(kPage) +
                              sim::cost::kCreateEvent + sim::cost::kRecordEvent;
  CHECK(device.now() == calls);
  CHECK(device.modelledNanoseconds() == calls);
}

TEST_CASE("the cost table agrees with what was measured", "[sim][time]") {
  namespace cost = sim::cost;
  const auto pair = [](std::uint64_t bytes) {
    return static_cast<double>(cost::malloc(bytes) + cost::free(bytes));
  };
  CHECK(pair(2 * kMiB) == Catch::Approx(55'000).epsilon(0.02));
  CHECK(pair(20 * kMiB) == Catch::Approx(62'000).epsilon(0.02));
  CHECK(pair(kGiB) == Catch::Approx(446'000).epsilon(0.02));
  const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e3; };
  // In a training step.
  CHECK(us(cost::createPage(2 * kMiB)) == Catch::Approx(50).epsilon(0.02));
  CHECK(us(cost::kMap) == Catch::Approx(3.3).epsilon(0.02));
  CHECK(us(cost::setAccess(1, 2 * kMiB)) == Catch::Approx(43).epsilon(0.02));
  CHECK(us(cost::unmap(1, 2 * kMiB)) == Catch::Approx(39).epsilon(0.02));
  CHECK(us(cost::releasePage(2 * kMiB)) == Catch::Approx(27).epsilon(0.02));
  // What a call takes longer for a larger page, in calls alone.
  CHECK(us(cost::createPage(kGiB) - cost::createPage(2 * kMiB)) == Catch::Approx(21).epsilon(0.1));
  CHECK(us(cost::releasePage(kGiB) - cost::releasePage(2 * kMiB)) ==
        Catch::Approx(244).epsilon(0.1));
  CHECK(us(cost::setAccess(1, kGiB) - cost::setAccess(1, 2 * kMiB)) ==
        Catch::Approx(36).epsilon(0.1));
}

TEST_CASE("access and unmapping are priced by the page, in one call or many", "[sim][time]") {
  SimDevice device;
  const Address range = device.reserve(8 * kPage).orThrow();
  for (std::uint64_t i = 0; i < 8; ++i) {
    device.map(range + i * kPage, kPage, device.createPage(kPage).orThrow()).orThrow();
  }
  const std::uint64_t before = device.modelledNanoseconds();
  device.setAccess(range, 8 * kPage).orThrow();
  CHECK(device.modelledNanoseconds() - before == sim::cost::setAccess(8, 8 * kPage));
  CHECK(sim::cost::setAccess(8, 8 * kPage) > 7 * sim::cost::setAccess(1, kPage));
}

TEST_CASE("background calls are on their own account and take the program no time", "[sim][time]") {
  SimDevice device;
  {
    BackgroundAccount background;
    device.createPage(kPage).orThrow();
  }
  CHECK(device.now() == 0);
  CHECK(device.modelledNanoseconds() == 0);
  CHECK(device.modelledBackgroundNanoseconds() == sim::cost::createPage(kPage));
  CHECK(device.memoryInfo().ok());
  CHECK(device.modelledNanoseconds() == sim::cost::kMemoryInfo);
  CHECK(device.memoryCallNanoseconds() == sim::cost::createPage(kPage));
}

TEST_CASE("the time of memory calls has their prices, and what a free waits", "[sim][time]") {
  SimDevice device;
  device.free(device.malloc(kPage).orThrow()).orThrow();
  const Page page = device.createPage(kPage).orThrow();
  const Address at = device.reserve(kPage).orThrow();  // no memory
  device.map(at, kPage, page).orThrow();
  device.setAccess(at, kPage).orThrow();
  device.unmap(at, kPage).orThrow();
  device.releasePage(page).orThrow();
  CHECK(device.memoryCallNanoseconds() == device.modelledNanoseconds() - sim::cost::kReserve);
  const std::uint64_t before = device.memoryCallNanoseconds();
  const Address memory = device.malloc(kPage).orThrow();
  launch(device, Stream{}, "work", {}, 1'000'000);
  device.free(memory).orThrow();
  CHECK(device.memoryCallNanoseconds() > before + 1'000'000);
}

TEST_CASE("the program's own time is on no account", "[sim][time]") {
  SimDevice device;
  device.advanceHost(5'000);
  launch(device, Stream{}, "work", {});
  CHECK(device.now() == 5'000 + sim::cost::kLaunch);
  CHECK(device.modelledNanoseconds() == 0);
}

TEST_CASE("waiting moves the clock to the end of the work, and is on no account", "[sim][time]") {
  SimDevice device;
  launch(device, Stream{}, "work", {}, 1'000'000);
  device.synchronizeStream(Stream{}).orThrow();
  CHECK(device.now() == sim::cost::kLaunch + 1'000'000);
  CHECK(device.modelledNanoseconds() == sim::cost::kSynchronize);
}

TEST_CASE("work runs the configured lag after it was queued", "[sim][time]") {
  SimConfig config;
  config.gpu_lag_ns = 10'000'000;
  SimDevice device(config);
  const Event event = recorded(device, Stream{});
  const std::uint64_t queued = device.now();
  CHECK_FALSE(device.queryEvent(event).orThrow());
  device.synchronizeEvent(event).orThrow();
  CHECK(device.now() == queued + 10'000'000);
  CHECK(device.queryEvent(event).orThrow());
}

TEST_CASE("streams overlap, and a wait between them adds up", "[sim][time]") {
  SimDevice device;
  const Stream first = newStream(device);
  const Stream second = newStream(device);
  const Stream third = newStream(device);
  const std::uint64_t start = device.now();
  launch(device, first, "first", {}, 1'000'000);
  launch(device, second, "second", {}, 1'000'000);
  order(device, first, third);
  launch(device, third, "third", {}, 1'000'000);
  device.synchronizeStream(second).orThrow();
  CHECK(device.now() < start + 1'100'000);
  device.synchronizeStream(third).orThrow();
  CHECK(device.now() == start + sim::cost::kLaunch + 2'000'000);
}

TEST_CASE("effects run in the order in which work completes", "[sim][time]") {
  SimDevice device;
  std::vector<std::string> done;
  const auto queue = [&](Stream stream, const char* name, std::uint64_t duration) {
    const auto effect = [&done, name](sim::MemoryView&) { done.emplace_back(name); };
    device.launch(stream, {name, {}, duration, effect}).orThrow();
  };
  const Stream slow = newStream(device);
  const Stream fast = newStream(device);
  queue(slow, "slow", 1'000'000);
  queue(fast, "fast", 500'000);
  queue(fast, "then", 0);
  CHECK(done.empty());
  device.advanceHost(600'000);
  CHECK(done == std::vector<std::string>{"fast", "then"});
  device.synchronizeDevice().orThrow();
  CHECK(done == std::vector<std::string>{"fast", "then", "slow"});
}

TEST_CASE("waiting for work that never ends is an error, not a hang", "[sim][time]") {
  SimDevice device;
  const Stream stuck = newStream(device);
  const Stream other = newStream(device);
  const Address memory = device.malloc(kPage).orThrow();
  launchEndless(device, stuck);
  const Event never = recorded(device, stuck);
  device.advanceHost(std::uint64_t{1} << 60);
  CHECK_FALSE(device.queryEvent(never).orThrow());
  CHECK_FALSE(device.queryStream(stuck).orThrow());
  CHECK(kindOf(device.synchronizeEvent(never)) == ErrorKind::kWouldWaitForever);
  CHECK(kindOf(device.synchronizeStream(stuck)) == ErrorKind::kWouldWaitForever);
  CHECK(kindOf(device.synchronizeDevice()) == ErrorKind::kWouldWaitForever);
  const std::uint64_t free_bytes = device.memoryInfo().orThrow().free_bytes;
  CHECK(kindOf(device.free(memory)) == ErrorKind::kWouldWaitForever);
  CHECK(device.memoryInfo().orThrow().free_bytes == free_bytes);
  launch(device, other, "still works", {writes(memory)});
  device.synchronizeStream(other).orThrow();
  device.waitEvent(other, never).orThrow();
  CHECK_FALSE(device.queryStream(other).orThrow());
  device.audit();
}

TEST_CASE("calls repeated on a new simulated device give equal addresses and times",
          "[sim][time]") {
  const auto run = [] {
    SimDevice device;
    std::vector<std::uint64_t> seen;
    for (std::uint64_t i = 1; i < 20; ++i) seen.push_back(device.malloc(i * 300 * kKiB).orThrow());
    for (std::size_t i = 0; i < seen.size(); i += 2) device.free(seen[i]).orThrow();
    seen.push_back(device.malloc(700 * kKiB).orThrow());
    seen.push_back(device.reserve(kGiB).orThrow());
    seen.push_back(device.createStream().orThrow().raw);
    seen.push_back(device.now());
    return seen;
  };
  CHECK(run() == run());
}

}  // namespace cistern::test
