// What would happen if the rules of moving pages were broken: each is broken here by hand, on the
// bare device, and the race detector says so. The other tests mean what they say only because of
// that.
#include "tests/engine/pages/pages_support.hpp"

namespace cistern::test {
namespace {

using Kind = sim::RaceReport::Kind;

/// A page at `old`, in use by work on the first stream, and room for it at `next`.
struct Moving {
  static constexpr std::uint64_t kBytes = 2 * kMiB;

  Moving() { map(old); }
  void map(Address at) {
    device.map(at, kBytes, page).orThrow();
    device.setAccess(at, kBytes).orThrow();
  }
  Status launch(Stream stream, Address at) {
    return device.launch(stream, {"work", {{at, kBytes, sim::AccessKind::kWrite}}, 2'000, nullptr});
  }
  std::vector<Kind> found() const {
    std::vector<Kind> kinds;
    for (const sim::RaceReport& report : device.races()) kinds.push_back(report.kind);
    return kinds;
  }

  sim::SimDevice device{simOf(kGiB, 1'000'000)};
  Stream first = device.createStream().orThrow(), second = device.createStream().orThrow();
  Address old = device.reserve(kBytes).orThrow(), next = device.reserve(kBytes).orThrow();
  Page page = device.createPage(kBytes).orThrow();
};

}  // namespace

TEST_CASE("removing an old mapping while its work is queued is found", "[engine][pages]") {
  Moving m;
  m.launch(m.first, m.old).orThrow();
  m.map(m.next);
  m.device.unmap(m.old, m.kBytes).orThrow();
  CHECK(m.found() == std::vector{Kind::kUnmapInUse});
}

TEST_CASE("handing an old mapping's address out for another page too early is found",
          "[engine][pages]") {
  Moving m;
  m.launch(m.first, m.old).orThrow();
  const Page other = m.device.createPage(m.kBytes).orThrow();
  CHECK_FALSE(m.device.map(m.old, m.kBytes, other).ok());  // the device would not have it
  m.device.unmap(m.old, m.kBytes).orThrow();
  m.device.map(m.old, m.kBytes, other).orThrow();
  CHECK(m.found() == std::vector{Kind::kUnmapInUse});
}

TEST_CASE("handing an old mapping out while the page is used through its new one is found",
          "[engine][pages]") {
  Moving m;
  m.launch(m.first, m.old).orThrow();
  m.map(m.next);
  m.launch(m.first, m.next).orThrow();  // in stream order: right
  REQUIRE(m.found().empty());
  m.launch(m.second, m.old).orThrow();
  CHECK(m.found() == std::vector{Kind::kRace});
}

TEST_CASE("moving a page to another stream without an order is found", "[engine][pages]") {
  Moving m;
  m.launch(m.first, m.old).orThrow();
  m.map(m.next);
  SECTION("without") {
    m.launch(m.second, m.next).orThrow();
    CHECK(m.found() == std::vector{Kind::kRace});
  }
  SECTION("with an event between") {
    const Event event = m.device.createEvent().orThrow();
    m.device.recordEvent(event, m.first).orThrow();
    m.device.waitEvent(m.second, event).orThrow();
    m.launch(m.second, m.next).orThrow();
    CHECK(m.found().empty());
  }
}

TEST_CASE("work through a mapping that is gone, or not accessible, is found", "[engine][pages]") {
  Moving m;
  m.device.map(m.next, m.kBytes, m.page).orThrow();  // no setAccess
  CHECK_FALSE(m.launch(m.first, m.next).ok());
  m.device.unmap(m.old, m.kBytes).orThrow();
  CHECK_FALSE(m.launch(m.first, m.old).ok());
  CHECK(m.found() == std::vector{Kind::kIllegalAccess, Kind::kIllegalAccess});
}

}  // namespace cistern::test
