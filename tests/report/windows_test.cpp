#include "interop/report/windows.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "interop/report/gzip.hpp"
#include "tests/report/report_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;

Moment at(std::uint32_t done) { return {MomentKind::kNamed, "now", done, {}, true}; }

std::vector<Window> windowsOf(const Study& study, std::vector<Moment> moments) {
  return windowsAround(study, moments, 1'000'000'000);
}

/// So many blocks of 512 bytes, one after another, each freed at once but for every tenth.
std::string longRecording(int blocks, int kept = 10) {
  std::string text;
  for (int i = 0; i < blocks; ++i) {
    char address[32];
    (void)std::snprintf(address, sizeof address, "%x", 0x100000 + i * 512);
    text += "a 512 0 1 " + std::string(address) + " 0 0 0\n";
    if (i % kept != kept - 1) text += "f " + std::to_string(i) + " 1\n";
  }
  return text;
}

TEST_CASE("a window reaches 50,000 events either way, and no further than the recording") {
  const Subject subject = testing::subjectOf(longRecording(80'000));
  const Study study(subject);
  const std::vector<Window> alone = windowsOf(study, {at(70'000)});
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].first == 20'000);
  CHECK(alone[0].count == 100'000);
  const std::vector<Window> ends = windowsOf(study, {at(10), at(study.events() - 5)});
  REQUIRE(ends.size() == 2);
  CHECK(ends[0].first == 0);
  CHECK(ends[0].count == 50'010);
  CHECK(ends[1].first + ends[1].count == study.events());
  CHECK(windowOf(ends, at(10)) == 0);
  CHECK(windowOf(ends, at(study.events() - 5)) == 1);
}

TEST_CASE("windows that overlap are one") {
  const Subject subject = testing::subjectOf(longRecording(80'000));
  const Study study(subject);
  const std::vector<Window> windows = windowsOf(study, {at(10'000), at(70'000)});
  REQUIRE(windows.size() == 1);
  CHECK(windows[0].count == 120'000);
}

TEST_CASE("there is no window without addresses") {
  const Subject subject = testing::subjectOf("a 100 0 1\n");
  CHECK(windowsOf(Study(subject), {at(1)}).empty());
}

TEST_CASE("windows that have no room are left out, the last and least needed first") {
  const Subject subject = testing::subjectOf(longRecording(300'000, 1'000'000));
  const Study study(subject);
  std::vector<Moment> moments;
  for (const std::uint32_t done : {60'000u, 180'000u, 300'000u, 420'000u})
    moments.push_back({MomentKind::kFailure, "f", done, done, true});
  moments[1].kind = MomentKind::kPeak;
  const std::uint64_t one = packed(windowJson(study, {10'000, 100'000}).dump()).deflated.size();
  const auto with_windows = [&](std::uint64_t most) {
    std::vector<Moment> left = moments;
    const std::size_t windows = windowsAround(study, left, most).size();
    std::string who;
    for (const Moment& moment : left) who += moment.has_window ? 'x' : '-';
    CHECK(windows == std::size_t(std::count(who.begin(), who.end(), 'x')));
    return who;
  };
  CHECK(with_windows(one / 2) == "----");
  CHECK(with_windows(one * 3 / 2) == "x---");
  CHECK(with_windows(one * 5 / 2) == "xx--");
  CHECK(with_windows(one * 7 / 2) == "xx-x");
  CHECK(with_windows(one * 9 / 2) == "xxxx");
}

TEST_CASE("moments close together share a window, and its room") {
  const Subject subject = testing::subjectOf(longRecording(100'000));
  const Study study(subject);
  std::vector<Moment> moments;
  for (std::uint32_t i = 0; i < 16; ++i) moments.push_back(at(80'000 + i));
  const std::uint64_t one = packed(windowJson(study, {30'000, 100'000}).dump()).deflated.size();
  const std::vector<Window> windows = windowsAround(study, moments, one * 3 / 2);
  REQUIRE(windows.size() == 1);
  CHECK(windows[0].count == 100'015);
}

struct Block {
  std::uint64_t address, bytes;
  bool pending = false;
};

/// The page's reading of a window: the blocks after `events` of its events, by address.
std::map<std::uint64_t, Block> played(const json& window, std::size_t events) {
  std::vector<Block> blocks;
  std::set<std::size_t> there;
  const json& before = window["blocks"];
  for (std::size_t i = 0; i < before["address"].size(); ++i) {
    blocks.push_back({before["address"][i], before["bytes"][i], before["pending"][i] == 1});
    there.insert(i);
  }
  std::uint64_t address = 0;
  const json& columns = window["events"];
  std::set<std::size_t> ended;
  std::map<std::size_t, std::size_t> uses_end;
  for (std::size_t i = 0; i < columns["kind"].size(); ++i)
    if (columns["kind"][i] == 2) uses_end[columns["block"][i]] = i;
  for (std::size_t i = 0; i < events; ++i) {
    address += std::uint64_t(columns["address"][i].get<std::int64_t>());
    const int kind = columns["kind"][i];
    const std::size_t block = columns["block"][i];
    if (kind == 0) {
      REQUIRE(block == blocks.size());
      blocks.push_back({address, columns["bytes"][i]});
      there.insert(block);
    }
    if (kind == 1 && !uses_end.contains(block)) there.erase(block);
    if (kind == 1 && uses_end.contains(block)) blocks[block].pending = true;
    if (kind == 2) there.erase(block);
  }
  std::map<std::uint64_t, Block> state;
  for (const std::size_t block : there) state[blocks[block].address] = blocks[block];
  return state;
}

/// Blocks that come and go at random, some of which other streams use beyond their free.
std::string randomRecording(std::uint64_t seed, int events) {
  std::mt19937_64 random(seed);
  std::string text = "r alloc 1000 65536 0 0 0\n";
  std::vector<int> live, pending;
  const auto take = [&](std::vector<int>& from) {
    std::swap(from[random() % from.size()], from.back());
    const int taken = from.back();
    from.pop_back();
    return taken;
  };
  int blocks = 0;
  for (int i = 0; i < events; ++i) {
    const auto what = random() % 4;
    if (what == 0 && !live.empty()) {
      const int freed = take(live);
      text += "f " + std::to_string(freed) + " 1\n";
      if (random() % 2 == 0) pending.push_back(freed);
    } else if (what == 1 && !pending.empty()) {
      text += "e " + std::to_string(take(pending)) + " 1\n";
    } else {
      char address[32];
      (void)std::snprintf(address, sizeof address, "%x", 0x1000 + blocks * 512);
      text += "a " + std::to_string(random() % 512 + 1) + " 0 1 " + address + " 0 0 0\n";
      live.push_back(blocks++);
    }
  }
  for (const int block : pending) text += "e " + std::to_string(block) + " 1\n";
  return text;
}

TEST_CASE("a window plays every state of the recording") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    const Subject subject = testing::subjectOf(randomRecording(seed, 300));
    const Study study(subject);
    const Window window{100, study.events() - 100};
    const json told = windowJson(study, window);
    for (std::uint32_t events = 0; events <= window.count; events += 7) {
      const Living living = livingAfter(study.lives, window.first + events);
      const auto state = played(told, events);
      REQUIRE(state.size() == living.held.size() + living.pending.size());
      for (const std::uint32_t number : living.held) {
        const Life& life = study.lives[number];
        REQUIRE(state.contains(life.address));
        CHECK(state.at(life.address).bytes == life.bytes);
        CHECK_FALSE(state.at(life.address).pending);
      }
      for (const std::uint32_t number : living.pending)
        CHECK(state.at(study.lives[number].address).pending);
    }
  }
}

TEST_CASE("a window begins with the memory that is reserved then, and has its changes") {
  const Subject subject = testing::subjectOf(
      "r alloc 1000 4096 0 0 5\na 512 0 5 1000 0 0 0\nr map 9000 8192 3 0 5\nt 5 \"step\"\n"
      "r unmap 9000 8192 3 0 5\no 99 0 5 0 0 0 {}\n");
  const Study study(subject);
  const json told = windowJson(study, {2, 4});
  CHECK(told["first"] == 2);
  CHECK(told["start_us"] == 10);
  CHECK(told["ranges"] == json{{0x1000, 4096, 0, 0, 0}});
  CHECK(told["events"]["kind"] == json{5, 8, 6, 7});
  CHECK(told["events"]["dt_us"] == json{5, 5, 5, 5});
  CHECK(told["events"]["bytes"] == json{8192, 0, 8192, 99});
  CHECK(told["events"]["address"][0] == 0x9000);
  CHECK(told["blocks"]["since_us"] == json::array({10}));
}

}  // namespace
}  // namespace cistern::report
