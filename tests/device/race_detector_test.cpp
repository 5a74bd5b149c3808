// The race detector: each rule is shown to be caught when it is broken, and beside it the legal
// twin that is not reported.
#include "tests/device/sim_support.hpp"

namespace cistern::test {
namespace {

using Kind = sim::RaceReport::Kind;

/// Two streams and a piece of memory.
struct Bench {
  SimDevice device;
  Stream first = newStream(device);
  Stream second = newStream(device);
  Address memory = device.malloc(kPage).orThrow();

  std::size_t races() const { return device.races().size(); }
};

/// A page at `old_view`, and room for it at `new_view`.
struct Aliased : Bench {
  Address old_view = device.reserve(kPage).orThrow();
  Address new_view = device.reserve(kPage).orThrow();
  Page page = device.createPage(kPage).orThrow();
  Aliased() { mapWithAccess(device, old_view, page); }
};

}  // namespace

// ---- Conflicts ---------------------------------------------------------------------------------

TEST_CASE("unordered writes on two streams race, and the report names both", "[sim][race]") {
  Bench b;
  launch(b.device, b.first, "producer", {writes(b.memory, 1'024)});
  launch(b.device, b.second, "thief", {writes(b.memory + 512, 1'024)});
  REQUIRE(b.races() == 1);
  const auto race = b.device.races()[0];
  CHECK(race.kind == Kind::kRace);
  CHECK(race.first.work == "producer");
  CHECK(race.second.work == "thief");
  CHECK(race.first.stream == b.first);
  CHECK(race.second.stream == b.second);
  CHECK(race.first.address == b.memory + 512);
  CHECK(race.second.address == b.memory + 512);
  CHECK(race.text.find("producer") != std::string::npos);
  CHECK(race.text.find("thief") != std::string::npos);
  b.device.clearRaces();
  CHECK(b.races() == 0);
}

TEST_CASE("reads race with writes in either order, but not with reads", "[sim][race]") {
  Bench b;
  launch(b.device, b.first, "read", {reads(b.memory, 512)});
  launch(b.device, b.second, "read too", {reads(b.memory, 512)});
  CHECK(b.races() == 0);
  launch(b.device, b.second, "write", {writes(b.memory, 512)});
  REQUIRE(b.races() == 1);  // with the first stream's read; its own came before
  CHECK_FALSE(b.device.races()[0].first.writes);
  launch(b.device, b.first, "read late", {reads(b.memory, 512)});
  REQUIRE(b.races() == 2);
  CHECK(b.device.races()[1].first.writes);
}

TEST_CASE("accesses that touch but do not overlap do not race", "[sim][race]") {
  Bench b;
  launch(b.device, b.first, "low", {writes(b.memory, 512)});
  launch(b.device, b.second, "high", {writes(b.memory + 512, 512)});
  CHECK(b.races() == 0);
}

TEST_CASE("every reader since the last write is remembered", "[sim][race]") {
  Bench b;
  const Stream third = newStream(b.device);
  launch(b.device, b.first, "one", {reads(b.memory, 4'096)});
  launch(b.device, b.second, "two", {reads(b.memory + 1'024, 1'024)});
  launch(b.device, third, "writer", {writes(b.memory, 4'096)});
  CHECK(b.races() == 2);
}

TEST_CASE("one piece of work does not race with itself", "[sim][race]") {
  Bench b;
  launch(b.device, b.first, "in place", {reads(b.memory), writes(b.memory), reads(b.memory)});
  CHECK(b.races() == 0);
}

TEST_CASE("happening to be over in time does not order work", "[sim][race]") {
  Bench b;
  launch(b.device, b.first, "early", {writes(b.memory)}, 10);
  b.device.advanceHost(1'000'000'000);
  launch(b.device, b.second, "late", {writes(b.memory)}, 10);
  CHECK(b.races() == 1);
}

// ---- What orders work --------------------------------------------------------------------------

TEST_CASE("stream order orders", "[sim][race]") {
  Bench b;
  launch(b.device, b.first, "write", {writes(b.memory)});
  launch(b.device, b.first, "write again", {writes(b.memory)});
  CHECK(b.races() == 0);
}

TEST_CASE("an event orders what was before its record with what is after the wait", "[sim][race]") {
  Bench b;
  launch(b.device, b.first, "write", {writes(b.memory)});
  order(b.device, b.first, b.second);
  launch(b.device, b.second, "read", {reads(b.memory)});
  CHECK(b.races() == 0);
  launch(b.device, b.first, "write more", {writes(b.memory)});  // not ordered after the read
  CHECK(b.races() == 1);
}

TEST_CASE("an event does not order what is queued after its record", "[sim][race]") {
  Bench b;
  const Event event = recorded(b.device, b.first);
  launch(b.device, b.first, "after the record", {writes(b.memory)});
  b.device.waitEvent(b.second, event).orThrow();
  launch(b.device, b.second, "too early", {reads(b.memory)});
  CHECK(b.races() == 1);
}

TEST_CASE("orders add up over several streams", "[sim][race]") {
  Bench b;
  const Stream third = newStream(b.device);
  launch(b.device, b.first, "write", {writes(b.memory)});
  order(b.device, b.first, b.second);
  order(b.device, b.second, third);
  launch(b.device, third, "write", {writes(b.memory)});
  CHECK(b.races() == 0);
}

TEST_CASE("an event that was queried and is complete orders later work of all streams",
          "[sim][race]") {
  Bench b;
  launch(b.device, b.first, "write", {writes(b.memory)}, 1'000);
  const Event event = recorded(b.device, b.first);
  SECTION("complete") {
    b.device.advanceHost(10'000);
    REQUIRE(b.device.queryEvent(event).orThrow());
    launch(b.device, b.second, "write", {writes(b.memory)});
    CHECK(b.races() == 0);
  }
  SECTION("complete, but only queried later") {
    b.device.advanceHost(10'000);
    launch(b.device, b.second, "write", {writes(b.memory)});
    REQUIRE(b.device.queryEvent(event).orThrow());
    CHECK(b.races() == 1);
  }
  SECTION("not complete") {
    launch(b.device, b.first, "long", {}, 1'000'000);
    const Event late = recorded(b.device, b.first);
    REQUIRE_FALSE(b.device.queryEvent(late).orThrow());
    launch(b.device, b.second, "write", {writes(b.memory)});
    CHECK(b.races() == 1);
  }
}

TEST_CASE("waiting for an event, a stream or the device orders", "[sim][race]") {
  Bench b;
  launch(b.device, b.first, "write", {writes(b.memory)});
  SECTION("event") { b.device.synchronizeEvent(recorded(b.device, b.first)).orThrow(); }
  SECTION("stream") { b.device.synchronizeStream(b.first).orThrow(); }
  SECTION("stream query") {
    b.device.advanceHost(1'000'000);
    REQUIRE(b.device.queryStream(b.first).orThrow());
  }
  SECTION("device") { b.device.synchronizeDevice().orThrow(); }
  SECTION("free") { b.device.free(b.device.malloc(512).orThrow()).orThrow(); }
  launch(b.device, b.second, "write", {writes(b.memory)});
  CHECK(b.races() == 0);
}

TEST_CASE("waiting for one stream does not order another's work", "[sim][race]") {
  Bench b;
  launch(b.device, b.first, "write", {writes(b.memory)});
  b.device.synchronizeStream(b.second).orThrow();
  launch(b.device, b.second, "write", {writes(b.memory)});
  CHECK(b.races() == 1);
}

TEST_CASE("a new stream is not ordered after one that was destroyed", "[sim][race]") {
  Bench b;
  launch(b.device, b.first, "write", {writes(b.memory)});
  SECTION("unless the host knew its work to be complete") {
    b.device.synchronizeStream(b.first).orThrow();
    b.device.destroyStream(b.first).orThrow();
    launch(b.device, newStream(b.device), "write", {writes(b.memory)});
    CHECK(b.races() == 0);
  }
  SECTION("when it did not") {
    b.device.destroyStream(b.first).orThrow();
    launch(b.device, newStream(b.device), "write", {writes(b.memory)});
    CHECK(b.races() == 1);
  }
  SECTION("nor after what the destroyed one had last waited for") {
    order(b.device, b.first, b.second);
    b.device.destroyStream(b.second).orThrow();
    launch(b.device, newStream(b.device), "write", {writes(b.memory)});
    CHECK(b.races() == 1);
  }
}

TEST_CASE("memory that was freed and handed out again starts afresh", "[sim][race]") {
  Bench b;
  launch(b.device, b.first, "write", {writes(b.memory)});
  b.device.free(b.memory).orThrow();
  REQUIRE(b.device.malloc(kPage).orThrow() == b.memory);
  launch(b.device, b.second, "write", {writes(b.memory)});
  CHECK(b.races() == 0);
}

// ---- Pages and views ---------------------------------------------------------------------------

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
    CHECK(report.kind == Kind::kUnmapInUse);
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
  CHECK(a.device.races()[0].kind == Kind::kIllegalAccess);
  CHECK(a.device.races()[0].second.work == "stale");
}

// ---- Graphs ------------------------------------------------------------------------------------

TEST_CASE("branches of a graph race unless its dependencies order them", "[sim][race]") {
  Bench b;
  b.device.beginCapture(b.first, CaptureMode::kRelaxed).orThrow();
  launch(b.device, b.first, "root", {writes(b.memory)});
  order(b.device, b.first, b.second);
  launch(b.device, b.first, "left", {writes(b.memory, 512)});
  launch(b.device, b.second, "right", {writes(b.memory + 512, 512)});
  SECTION("disjoint") {
    order(b.device, b.second, b.first);
    launch(b.device, b.first, "join", {reads(b.memory)});
    b.device.launchGraph(endAndInstantiate(b.device, b.first), b.first).orThrow();
    CHECK(b.races() == 0);
  }
  SECTION("overlapping") {
    launch(b.device, b.second, "stray", {reads(b.memory, 4)});
    order(b.device, b.second, b.first);
    const GraphExec exec = endAndInstantiate(b.device, b.first);
    CHECK(b.races() == 0);  // recorded only: nothing has touched memory yet
    b.device.launchGraph(exec, b.first).orThrow();
    REQUIRE(b.races() == 1);
    CHECK(b.device.races()[0].first.work == "left");
    CHECK(b.device.races()[0].second.work == "stray");
    CHECK(b.device.races()[0].second.stream == b.second);
  }
}

TEST_CASE("a graph is ordered after its stream, and its stream after it", "[sim][race]") {
  Bench b;
  b.device.beginCapture(b.first, CaptureMode::kRelaxed).orThrow();
  launch(b.device, b.first, "node", {writes(b.memory)});
  const GraphExec exec = endAndInstantiate(b.device, b.first);
  launch(b.device, b.second, "before", {writes(b.memory)});
  b.device.launchGraph(exec, b.second).orThrow();
  launch(b.device, b.second, "after", {writes(b.memory)});
  CHECK(b.races() == 0);
  launch(b.device, b.first, "elsewhere", {reads(b.memory)});
  CHECK(b.races() == 1);
}

TEST_CASE("launches of one graph are ordered, those of two that share memory are not",
          "[sim][race]") {
  Bench b;
  const auto capture = [&] {
    b.device.beginCapture(b.first, CaptureMode::kRelaxed).orThrow();
    launch(b.device, b.first, "node", {writes(b.memory)});
    return endAndInstantiate(b.device, b.first);
  };
  const GraphExec one = capture();
  b.device.launchGraph(one, b.first).orThrow();
  b.device.launchGraph(one, b.second).orThrow();
  CHECK(b.races() == 0);
  const GraphExec two = capture();
  SECTION("on one stream") { b.device.launchGraph(two, b.second).orThrow(); }
  SECTION("after a wait") {
    b.device.synchronizeStream(b.second).orThrow();
    b.device.launchGraph(two, b.first).orThrow();
  }
  CHECK(b.races() == 0);
  SECTION("at once") {
    b.device.launchGraph(two, b.first).orThrow();
    CHECK(b.races() == 1);
  }
}

TEST_CASE("a replay counts against unmapping until it is known to be complete", "[sim][race]") {
  Aliased a;
  a.device.beginCapture(a.first, CaptureMode::kRelaxed).orThrow();
  launch(a.device, a.first, "node", {writes(a.old_view)});
  const GraphExec exec = endAndInstantiate(a.device, a.first);
  SECTION("captured, never launched") {
    a.device.unmap(a.old_view, kPage).orThrow();
    CHECK(a.races() == 0);
    CHECK_FALSE(a.device.launchGraph(exec, a.first).ok());  // its address leads nowhere now
    CHECK(a.races() == 1);
  }
  SECTION("launched") {
    a.device.launchGraph(exec, a.first).orThrow();
    a.device.unmap(a.old_view, kPage).orThrow();
    CHECK(a.races() == 1);
  }
  SECTION("launched and waited for") {
    a.device.launchGraph(exec, a.first).orThrow();
    a.device.synchronizeStream(a.first).orThrow();
    a.device.unmap(a.old_view, kPage).orThrow();
    CHECK(a.races() == 0);
  }
}

TEST_CASE("forking and joining again and again needs no more lanes than the graph is wide",
          "[sim][race]") {
  std::vector<std::vector<sim::NodeId>> after = {{}};
  for (sim::NodeId fork = 0; fork < 300; fork += 3) {
    after.push_back({fork});
    after.push_back({fork});
    after.push_back({fork + 1, fork + 2});
  }
  const sim::GraphOrder order(after);
  CHECK(order.width() == 2);
  CHECK(order.sizeOf(0) + order.sizeOf(1) == after.size());
}

// ---- Off ---------------------------------------------------------------------------------------

TEST_CASE("a detector that is off reports nothing", "[sim][race]") {
  SimConfig config;
  config.race_detector = false;
  SimDevice device(config);
  const Stream other = newStream(device);
  const Address memory = device.malloc(kPage).orThrow();
  launch(device, Stream{}, "one", {writes(memory)});
  launch(device, other, "two", {writes(memory)});
  CHECK(device.races().empty());
  device.audit();
}

}  // namespace cistern::test
