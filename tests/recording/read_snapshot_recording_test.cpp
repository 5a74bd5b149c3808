#include "tests/recording/recording_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::recording::testing {
namespace {

std::string replaced(std::string whole, const std::string& part, const std::string& by) {
  return whole.replace(whole.find(part), part.size(), by);
}

const std::string kSnapshot = R"({"version":1,"device":"sim device 0","segments":[
{"address":"0x10000","size":4096,"kind":"small","in_pages":true,"pool":[0,7],"stream":"0x0","blocks":[
{"address":"0x10000","size":1024,"requested":1000,"state":"allocated","stream":"0x0"},
{"address":"0x10400","size":1024,"requested":900,"state":"pending","stream":"0x5"},
{"address":"0x10800","size":1024,"requested":0,"state":"free","stream":"0x0"},
{"address":"0x10c00","size":1024,"requested":0,"state":"unmapped","stream":"0x0"}]},
{"address":"0x20000","size":512,"kind":"large","in_pages":false,"pool":[0,0],"stream":"0x9","blocks":[
{"address":"0x20000","size":512,"requested":0,"state":"free","stream":"0x9"}]}]})";

TEST_CASE("a snapshot of Cistern gives its blocks and what is reserved") {
  const Recording r = parsed(kSnapshot);
  CHECK(r.source == Source::kSnapshot);
  CHECK(r.device == "sim device 0");
  CHECK(r.allocations == 2);
  CHECK(r.first_recorded == r.events.size());
  CHECK(r.pools.at(1).uid == 7);
  std::uint64_t reserved = 0, asked = 0, freed = 0;
  for (const Event& event : r.events) {
    if (event.kind == EventKind::kMap || event.kind == EventKind::kReserve) reserved += event.value;
    if (event.kind == EventKind::kAllocate) asked += event.value;
    if (event.kind == EventKind::kFree) ++freed;
  }
  CHECK(reserved == 3 * 1024 + 512);
  CHECK(asked == 1900);
  CHECK(freed == 1);
}

TEST_CASE("a block that is asleep in a snapshot lives, and has no memory") {
  const Recording r = parsed(replaced(kSnapshot, "\"allocated\"", "\"asleep\""));
  std::uint64_t reserved = 0;
  for (const Event& event : r.events) {
    if (event.kind == EventKind::kMap || event.kind == EventKind::kReserve) reserved += event.value;
  }
  CHECK(reserved == 2 * 1024 + 512);
  CHECK(r.allocations == 2);
  CHECK(r.events.front().kind == EventKind::kAllocate);
  CHECK(r.placeOf(r.events.front()).address == 0x10000);
  CHECK(r.events.front().value == 1000);
}

TEST_CASE("a snapshot says which memory lies in the host's") {
  const auto at = [](const std::string& location) {
    return replaced(kSnapshot, "\"in_pages\":true", "\"in_pages\":true,\"location\":" + location);
  };
  const Recording r = parsed(at("\"host\""));
  for (const Event& event : r.events) {
    if (event.kind != EventKind::kMap && event.kind != EventKind::kReserve) continue;
    CHECK((event.location == Location::kHost) == (event.kind == EventKind::kMap));
  }
  for (const Event& event : parsed(at("\"device\"")).events)
    CHECK(event.location == Location::kDevice);
  CHECK(complaint(at("\"disk\"")) ==
        "t: segments[0]: expected 'location' to be device or host, found 'disk'");
  CHECK(complaint(at("7")) == "t: segments[0]: expected location to be a string, found number");
}

TEST_CASE("a block of a snapshot may lie in both") {
  const auto at = [](const std::string& on_host) {
    return replaced(kSnapshot, "\"requested\":1000", "\"requested\":1000,\"on_host\":" + on_host);
  };
  std::uint64_t on_host = 0, on_device = 0;
  for (const Event& event : parsed(at("24")).events) {
    if (event.kind != EventKind::kMap) continue;
    (event.location == Location::kHost ? on_host : on_device) += event.value;
  }
  CHECK(on_host == 24);
  CHECK(on_device == 3 * 1024 - 24);
  CHECK(complaint(at("1025")) ==
        "t: segments[0].blocks[0]: expected 'on_host' to be at most 1024, found 1025");
}

TEST_CASE("a fault in a snapshot of Cistern is named with its place") {
  CHECK(complaint(replaced(kSnapshot, "\"version\":1", "\"version\":2")) ==
        "t: the snapshot: expected version 1, found 2");
  CHECK(complaint(replaced(kSnapshot, "\"0x10400\"", "\"10400\"")) ==
        "t: segments[0].blocks[1]: expected 'address' to be hexadecimal, as in \"0x10\", found "
        "'10400'");
  CHECK(complaint(replaced(kSnapshot, "\"0x10400\"", "\"0x10401\"")) ==
        "t: segments[0].blocks[1]: expected a block at address 0x10400");
  CHECK(complaint(replaced(kSnapshot, "\"free\"", "\"idle\"")) ==
        "t: segments[0].blocks[2]: expected 'state' to be allocated, pending, free, unmapped or "
        "asleep, found 'idle'");
  CHECK(complaint(replaced(kSnapshot, "\"requested\":1000", "\"requested\":-1")) ==
        "t: segments[0].blocks[0]: expected requested to be a number from 0, found number");
  CHECK(complaint(replaced(kSnapshot, "\"size\":512", "\"size\":513")) ==
        "t: segments[1]: expected blocks that cover the segment");
  CHECK(complaint(replaced(kSnapshot, "[0,7]", "[0]")) ==
        "t: segments[0]: expected 'pool' to be two numbers");
  CHECK(complaint("{\"version\":1,").starts_with("t: byte "));
  CHECK(complaint("{\"x\":" + std::string(100'000, '[')) == "t: nests deeper than a snapshot does");
  CHECK(complaint("{\"version\":1,\"device\":\"x\",\"segments\":[]}").starts_with("t: records no"));
}

TEST_CASE("a replay says that a snapshot of Cistern has no history") {
  CHECK_THROWS_WITH(parseFile(kSnapshot, "t", trace::Detail::kCalls),
                    "t: is a snapshot of Cistern, which has no history; `cistern report` draws it");
}

}  // namespace
}  // namespace cistern::recording::testing
