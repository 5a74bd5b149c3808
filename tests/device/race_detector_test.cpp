// The race detector: what conflicts, and what orders work. Each rule is shown to be caught when it
// is broken, and beside it the legal twin that is not reported. Read next: race_views_test.cpp,
// race_graphs_test.cpp.
#include "tests/device/race_support.hpp"

namespace cistern::test {

// ---- Conflicts ---------------------------------------------------------------------------------

TEST_CASE("unordered writes on two streams race, and the report names both", "[sim][race]") {
  Bench b;
  launch(b.device, b.first, "producer", {writes(b.memory, 1'024)});
  launch(b.device, b.second, "thief", {writes(b.memory + 512, 1'024)});
  REQUIRE(b.races() == 1);
  const auto race = b.device.races()[0];
  CHECK(race.kind == RaceKind::kRace);
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

TEST_CASE("writing a part over leaves the rest with who wrote it", "[sim][race]") {
  Bench b;
  launch(b.device, b.first, "whole", {writes(b.memory, 4'096)});
  launch(b.device, b.first, "low", {writes(b.memory, 512)});
  launch(b.device, b.first, "middle", {writes(b.memory + 1'024, 512)});
  const auto racesWith = [&](std::uint64_t offset) {
    b.device.clearRaces();
    launch(b.device, newStream(b.device), "reader", {reads(b.memory + offset, 4)});
    return b.races() == 1 ? b.device.races()[0].first.work : "";
  };
  CHECK(racesWith(0) == "low");
  CHECK(racesWith(512) == "whole");
  CHECK(racesWith(1'532) == "middle");
  CHECK(racesWith(4'092) == "whole");
  CHECK(racesWith(4'096).empty());
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
  SECTION("though the destroyed one had waited for the work") {
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
