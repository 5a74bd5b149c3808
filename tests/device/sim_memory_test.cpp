// The simulated device's memory: capacity, addresses, and what it refuses.
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "tests/device/sim_support.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

using Catch::Matchers::ContainsSubstring;

SimConfig ofCapacity(std::uint64_t bytes) {
  SimConfig config;
  config.capacity = bytes;
  return config;
}

std::uint64_t freeBytes(SimDevice& device) { return device.memoryInfo().orThrow().free_bytes; }

}  // namespace

TEST_CASE("small allocations are charged by 512 bytes, large ones by 2 MiB", "[sim][memory]") {
  SimDevice device(ofCapacity(64 * kMiB));
  std::uint64_t expected = 64 * kMiB;
  CHECK(freeBytes(device) == expected);
  (void)device.malloc(1).orThrow();
  CHECK(freeBytes(device) == (expected -= 512));
  (void)device.malloc(kMiB - 1).orThrow();
  CHECK(freeBytes(device) == (expected -= kMiB));
  (void)device.malloc(kMiB).orThrow();
  CHECK(freeBytes(device) == (expected -= 2 * kMiB));
  (void)device.malloc(2 * kMiB + 1).orThrow();
  CHECK(freeBytes(device) == (expected -= 4 * kMiB));
  device.audit();
}

TEST_CASE("malloc and pages share one capacity, to the byte", "[sim][memory]") {
  SimDevice device(ofCapacity(8 * kMiB));
  const Page page = device.createPage(4 * kMiB).orThrow();
  const Address memory = device.malloc(4 * kMiB).orThrow();
  CHECK(freeBytes(device) == 0);
  CHECK(kindOf(device.malloc(1)) == ErrorKind::kOutOfMemory);
  CHECK(kindOf(device.createPage(kPage)) == ErrorKind::kOutOfMemory);
  device.releasePage(page).orThrow();
  device.free(memory).orThrow();
  CHECK(freeBytes(device) == 8 * kMiB);
  (void)device.malloc(8 * kMiB).orThrow();
  device.audit();
}

TEST_CASE("what other programs hold is not free", "[sim][memory]") {
  SimDevice device(ofCapacity(8 * kMiB));
  const Address memory = device.malloc(4 * kMiB).orThrow();
  CHECK(device.foreignUse(3 * kMiB) == 3 * kMiB);
  CHECK(freeBytes(device) == kMiB);
  CHECK(kindOf(device.createPage(kPage)) == ErrorKind::kOutOfMemory);
  CHECK(device.foreignUse(kGiB) == 4 * kMiB);
  CHECK(freeBytes(device) == 0);
  device.free(memory).orThrow();
  CHECK(freeBytes(device) == 4 * kMiB);
  CHECK(device.foreignUse(0) == 0);
  CHECK(freeBytes(device) == 8 * kMiB);
  device.audit();
}

TEST_CASE("the lowest address that fits is handed out first", "[sim][memory]") {
  SimDevice device;
  const Address first = device.malloc(4 * kMiB).orThrow();
  const Address second = device.malloc(2 * kMiB).orThrow();
  CHECK(first == 0x10'0000'0000);
  CHECK(second == first + 4 * kMiB);
  device.free(first).orThrow();
  CHECK(device.malloc(6 * kMiB).orThrow() == second + 2 * kMiB);
  CHECK(device.malloc(512).orThrow() == first);
  CHECK(device.malloc(2 * kMiB).orThrow() == first + 2 * kMiB);
}

TEST_CASE("devices of different ordinals share no address and no handle", "[sim][memory]") {
  SimConfig config;
  config.ordinal = 1;
  SimDevice one(config);
  SimDevice zero;
  CHECK(one.malloc(kPage).orThrow() > zero.reserve(15 * kTiB).orThrow() + 15 * kTiB - 1);
  CHECK(one.createStream().orThrow() != zero.createStream().orThrow());
}

TEST_CASE("living devices of one ordinal share no address and no handle", "[sim][memory]") {
  const int ordinal = GENERATE(0, 7);
  SimConfig config;
  config.ordinal = ordinal;
  std::vector<std::unique_ptr<SimDevice>> devices;
  std::set<Address> places;
  std::set<Stream> streams;
  for (std::size_t made = 1; made <= 128; ++made) {
    SimDevice& device = *devices.emplace_back(std::make_unique<SimDevice>(config));
    const Address from = device.malloc(kPage).orThrow();
    const Address to = device.reserve(100 * kTiB).orThrow() + 100 * kTiB;
    CHECK(to <= Address{1} << 57);
    const auto after = places.lower_bound(from);
    CHECK((after == places.end() || *after >= to));
    CHECK((after == places.begin() || *std::prev(after) <= from));
    places.insert({from, to});
    CHECK(streams.insert(device.createStream().orThrow()).second);
  }
  CHECK_THROWS_WITH(SimDevice(config), ContainsSubstring("128 simulated devices of ordinal"));
  devices[70].reset();
  SimDevice(config).audit();  // another is possible, again and again
  SimDevice(config).audit();
}

TEST_CASE("a device that is alone has the same addresses as those before it", "[sim][memory]") {
  Address first = 0;
  for (int i = 0; i < 5'000; ++i) {
    SimDevice device;
    const Address address = device.malloc(kPage).orThrow();
    if (i == 0) first = address;
    REQUIRE(address == first);
  }
}

TEST_CASE("devices that threads make at once have addresses of their own", "[sim][memory]") {
  constexpr std::size_t threads = 4, each = 30;
  std::vector<std::unique_ptr<SimDevice>> devices(threads * each);
  onThreads(threads, [&](std::size_t thread) {
    for (std::size_t i = 0; i < each; ++i) {
      devices[thread * each + i] = std::make_unique<SimDevice>();
      const SimDevice passing;
    }
  });
  std::set<Address> addresses;
  for (const auto& device : devices) addresses.insert(device->malloc(kPage).orThrow());
  CHECK(addresses.size() == threads * each);
}

TEST_CASE("misused memory handles are refused and change nothing", "[sim][memory]") {
  SimDevice device;
  const Address range = device.reserve(4 * kPage).orThrow();
  const Page page = device.createPage(kPage).orThrow();
  const Address memory = device.malloc(kPage).orThrow();
  CHECK(kindOf(device.malloc(0)) == ErrorKind::kInvalidValue);
  CHECK(kindOf(device.free(memory + 512)) == ErrorKind::kInvalidValue);
  CHECK(kindOf(device.reserve(kPage + 512)) == ErrorKind::kInvalidValue);
  CHECK(kindOf(device.reserve(0)) == ErrorKind::kInvalidValue);
  CHECK(kindOf(device.reserve(1'024 * kTiB)) == ErrorKind::kOutOfMemory);
  CHECK(kindOf(device.freeReservation(range, kPage)) == ErrorKind::kInvalidValue);
  CHECK(kindOf(device.freeReservation(range + kPage, kPage)) == ErrorKind::kInvalidValue);
  CHECK(kindOf(device.releasePage(Page{999})) == ErrorKind::kInvalidValue);
  CHECK(kindOf(device.map(range + 512, kPage, page)) == ErrorKind::kInvalidValue);
  CHECK(kindOf(device.map(range + 4 * kPage, kPage, page)) == ErrorKind::kInvalidValue);
  CHECK(kindOf(device.map(range, 2 * kPage, page)) == ErrorKind::kInvalidValue);
  CHECK(kindOf(device.setAccess(range, kPage)) == ErrorKind::kInvalidValue);
  CHECK(kindOf(device.unmap(range, kPage)) == ErrorKind::kInvalidValue);
  device.audit();
}

TEST_CASE("calls on parts of pages are refused with the codes that CUDA gives", "[sim][memory]") {
  SimDevice device;
  const Address range = device.reserve(4 * kPage).orThrow();
  const Page page = device.createPage(2 * kPage).orThrow();
  CHECK(device.map(range, kPage, page).error().code == 801);
  device.map(range, 2 * kPage, page).orThrow();
  CHECK(device.setAccess(range, kPage).error().code == 1);
  CHECK(device.unmap(range, kPage).error().code == 1);
  CHECK(device.unmap(range + kPage, kPage).error().code == 1);
  CHECK(device.freeReservation(range, 4 * kPage).error().code == 1);
  device.unmap(range, 2 * kPage).orThrow();
  device.freeReservation(range, 4 * kPage).orThrow();
  device.audit();
}

TEST_CASE("a page that was released cannot be mapped, but lives on where it is", "[sim][memory]") {
  SimDevice device(ofCapacity(2 * kPage));
  const Address range = device.reserve(2 * kPage).orThrow();
  const Page page = device.createPage(kPage).orThrow();
  mapWithAccess(device, range, page);
  device.releasePage(page).orThrow();
  CHECK(kindOf(device.map(range + kPage, kPage, page)) == ErrorKind::kInvalidValue);
  CHECK(kindOf(device.releasePage(page)) == ErrorKind::kInvalidValue);
  CHECK(freeBytes(device) == kPage);
  launch(device, Stream{}, "use", {writes(range)});
  device.synchronizeDevice().orThrow();
  device.unmap(range, kPage).orThrow();
  CHECK(freeBytes(device) == 2 * kPage);
  device.audit();
}

TEST_CASE("a page under several addresses counts once", "[sim][memory]") {
  SimDevice device(ofCapacity(2 * kPage));
  const Address range = device.reserve(8 * kPage).orThrow();
  const Page page = device.createPage(kPage).orThrow();
  for (std::uint64_t i = 0; i < 8; ++i) mapWithAccess(device, range + i * kPage, page);
  CHECK(freeBytes(device) == kPage);
  device.releasePage(page).orThrow();
  device.unmap(range, 7 * kPage).orThrow();
  CHECK(freeBytes(device) == kPage);
  device.unmap(range + 7 * kPage, kPage).orThrow();
  CHECK(freeBytes(device) == 2 * kPage);
  device.audit();
}

TEST_CASE("without virtual memory, its calls are not supported", "[sim][memory]") {
  SimConfig config;
  config.virtual_memory = false;
  SimDevice device(config);
  CHECK_FALSE(device.virtualMemory().supported);
  CHECK(kindOf(device.reserve(kPage)) == ErrorKind::kNotSupported);
  CHECK(kindOf(device.createPage(kPage)) == ErrorKind::kNotSupported);
  CHECK(kindOf(device.unmap(0x1000, kPage)) == ErrorKind::kNotSupported);
  CHECK(device.malloc(kPage).ok());
}

TEST_CASE("work that touches what is not there is refused and reported", "[sim][memory]") {
  SimDevice device;
  const Address memory = device.malloc(4'096).orThrow();
  const Address range = device.reserve(2 * kPage).orThrow();
  device.map(range, kPage, device.createPage(kPage).orThrow()).orThrow();
  const auto refused = [&](Access access) {
    device.clearRaces();
    const Status status = device.launch(Stream{}, {"stray", {access}, 0, nullptr});
    return !status.ok() && status.error().code == 700 && device.races().size() == 1 &&
           device.races()[0].kind == sim::RaceReport::Kind::kIllegalAccess;
  };
  CHECK(refused(reads(memory + 4'000, 100)));
  CHECK(refused(reads(memory - 512, 100)));
  CHECK(refused(writes(range)));  // mapped, but without access
  device.setAccess(range, kPage).orThrow();
  CHECK_FALSE(refused(writes(range)));
  CHECK(refused(writes(range, kPage + 4)));
  CHECK(refused(writes(range + kPage)));
}

TEST_CASE("an access may span several pages", "[sim][memory]") {
  SimDevice device;
  const Address range = device.reserve(3 * kPage).orThrow();
  for (std::uint64_t i = 0; i < 3; ++i) {
    mapWithAccess(device, range + i * kPage, device.createPage(kPage).orThrow());
  }
  std::vector<std::uint32_t> out(kPage / 2, 0);
  std::vector<std::uint32_t> in(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint32_t>(i * 7);
  const Address at = range + kPage / 2;
  const auto write = [&](sim::MemoryView& view) { view.write(at, out.data(), 2 * kPage); };
  const auto read = [&](sim::MemoryView& view) { view.read(at, in.data(), 2 * kPage); };
  device.launch(Stream{}, {"write", {writes(at, 2 * kPage)}, 10, write}).orThrow();
  device.launch(Stream{}, {"read", {reads(at, 2 * kPage)}, 10, read}).orThrow();
  device.synchronizeDevice().orThrow();
  CHECK(in == out);
}

TEST_CASE("an effect sees the mappings of when its work was queued", "[sim][memory]") {
  SimConfig config;
  config.race_detector = false;  // what follows is a misuse, which must not corrupt the model
  SimDevice device(config);
  const Address range = device.reserve(kPage).orThrow();
  const Page first = device.createPage(kPage).orThrow();
  mapWithAccess(device, range, first);
  const std::uint32_t word = 42;
  const auto write = [&](sim::MemoryView& view) { view.write(range, &word, sizeof(word)); };
  device.launch(Stream{}, {"late", {writes(range, 4)}, 1'000'000'000, write}).orThrow();
  device.unmap(range, kPage).orThrow();
  device.releasePage(first).orThrow();
  mapWithAccess(device, range, device.createPage(kPage).orThrow());
  std::uint32_t found = 1;
  const auto read = [&](sim::MemoryView& view) { view.read(range, &found, sizeof(found)); };
  device.launch(Stream{}, {"read", {reads(range, 4)}, 0, read}).orThrow();
  device.synchronizeDevice().orThrow();
  CHECK(found == 0);
}

TEST_CASE("the books stay right over any sequence of calls", "[sim][memory]") {
  SimDevice device(ofCapacity(64 * kMiB));
  std::mt19937 random(7);
  std::vector<Address> mallocs;
  std::vector<Page> pages;
  std::vector<Address> views;
  const Address range = device.reserve(64 * kPage).orThrow();
  for (int step = 0; step < 2'000; ++step) {
    switch (random() % 6) {
      case 0: {
        const auto got = device.malloc(1 + random() % (3 * kMiB));
        if (got.ok()) mallocs.push_back(got.value());
        break;
      }
      case 1:
        if (mallocs.empty()) break;
        std::swap(mallocs[random() % mallocs.size()], mallocs.back());
        device.free(mallocs.back()).orThrow();
        mallocs.pop_back();
        break;
      case 2: {
        const auto got = device.createPage(kPage * (1 + random() % 2));
        if (got.ok()) pages.push_back(got.value());
        break;
      }
      case 3: {
        if (pages.empty()) break;
        const Address at = range + random() % 64 * kPage;
        if (device.map(at, kPage, pages[random() % pages.size()]).ok()) views.push_back(at);
        break;
      }
      case 4:
        if (views.empty()) break;
        std::swap(views[random() % views.size()], views.back());
        device.unmap(views.back(), kPage).orThrow();
        views.pop_back();
        break;
      case 5:
        if (pages.empty()) break;
        std::swap(pages[random() % pages.size()], pages.back());
        device.releasePage(pages.back()).orThrow();
        pages.pop_back();
        break;
    }
    device.audit();
  }
  for (const Address memory : mallocs) device.free(memory).orThrow();
  for (const Address view : views) device.unmap(view, kPage).orThrow();
  for (const Page page : pages) device.releasePage(page).orThrow();
  CHECK(freeBytes(device) == 64 * kMiB);
}

}  // namespace cistern::test
