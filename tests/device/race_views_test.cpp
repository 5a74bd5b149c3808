// The race detector where one page has several views, and where views come and go.
#include "tests/device/race_support.hpp"

namespace cistern::test {

TEST_CASE("two views of a page are the same memory", "[sim][race]") {
  Aliased a;
  mapWithAccess(a.device, a.new_view, a.page);
  launch(a.device, a.first, "old owner", {writes(a.old_view)});
  launch(a.device, a.first, "same stream", {writes(a.new_view)});
  CHECK(a.races() == 0);
  launch(a.device, a.second, "thief", {reads(a.new_view + 512, 512)});
  REQUIRE(a.races() == 1);
  CHECK(a.device.races()[0].first.address == a.new_view + 512);
  launch(a.device, a.second, "other address", {reads(a.old_view + 1'024, 512)});
  REQUIRE(a.races() == 2);
  CHECK(a.device.races()[1].first.address == a.new_view + 1'024);
  CHECK(a.device.races()[1].second.address == a.old_view + 1'024);
}

TEST_CASE("a page that moved to another stream without an order races", "[sim][race]") {
  Aliased a;
  launch(a.device, a.first, "last use", {reads(a.old_view)});
  mapWithAccess(a.device, a.new_view, a.page);
  SECTION("ordered by an event") {
    order(a.device, a.first, a.second);
    launch(a.device, a.second, "next use", {writes(a.new_view)});
    CHECK(a.races() == 0);
  }
  SECTION("not ordered") {
    launch(a.device, a.second, "next use", {writes(a.new_view)});
    CHECK(a.races() == 1);
  }
}

TEST_CASE("unmapping a view that queued work may still use is reported", "[sim][race]") {
  Aliased a;
  launch(a.device, a.first, "user", {reads(a.old_view, 512)});
  const Event used = recorded(a.device, a.first);
  SECTION("not known to be complete, though it is") {
    a.device.advanceHost(1'000'000);
    a.device.unmap(a.old_view, kPage).orThrow();
    REQUIRE(a.races() == 1);
    const auto report = a.device.races()[0];
    CHECK(report.kind == RaceKind::kUnmapInUse);
    CHECK(report.first.work == "user");
    CHECK(report.first.stream == a.first);
    CHECK(report.second.address == a.old_view);
  }
  SECTION("known to be complete") {
    a.device.synchronizeEvent(used).orThrow();
    a.device.unmap(a.old_view, kPage).orThrow();
    CHECK(a.races() == 0);
  }
  SECTION("another view of the page may go at once") {
    mapWithAccess(a.device, a.new_view, a.page);
    a.device.unmap(a.new_view, kPage).orThrow();
    CHECK(a.races() == 0);
  }
}

TEST_CASE("use on any stream counts against unmapping", "[sim][race]") {
  Aliased a;
  launch(a.device, a.first, "one", {reads(a.old_view, 512)});
  launch(a.device, a.second, "two", {reads(a.old_view, 512)});
  a.device.synchronizeStream(a.first).orThrow();
  a.device.unmap(a.old_view, kPage).orThrow();
  REQUIRE(a.races() == 1);
  CHECK(a.device.races()[0].first.work == "two");
}

TEST_CASE("work through a view that is gone is reported", "[sim][race]") {
  Aliased a;
  a.device.unmap(a.old_view, kPage).orThrow();
  CHECK_FALSE(a.device.launch(a.first, {"stale", {reads(a.old_view)}, 0, nullptr}).ok());
  REQUIRE(a.races() == 1);
  CHECK(a.device.races()[0].kind == RaceKind::kIllegalAccess);
  CHECK(a.device.races()[0].second.work == "stale");
}

}  // namespace cistern::test
