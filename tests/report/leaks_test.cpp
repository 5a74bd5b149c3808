// What is a leak and what is not. Each program here is made up anew from a seed: no rule may fit
// one program alone.
#include <deque>
#include <random>

#include "interop/report/analyses.hpp"
#include "tests/report/report_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;
using testing::Script;

constexpr int kKept = 3, kOther = 2;  // stacks of Script

json leaksIn(const Script& script) {
  const Subject subject = testing::subjectOf(script.text());
  return leaks(Study(subject));
}

/// A step of a program that frees all: some blocks that live at once.
void work(Script& script, std::mt19937& random, int stack = kOther) {
  std::vector<int> live;
  for (int i = 0; i < 12; ++i) live.push_back(script.allocate(1000 + random() % 5000, stack));
  while (!live.empty()) {
    script.free(live.back());
    live.pop_back();
  }
}

TEST_CASE("a block kept in each step is a leak, whatever its size") {
  for (const std::uint64_t bytes : {4ul, 4096ul, 1ul << 30}) {
    Script script;
    std::mt19937 random(3);
    for (int step = 0; step < 60; ++step) {
      work(script, random);
      script.allocate(bytes, kKept, 2);
    }
    const json found = leaksIn(script);
    REQUIRE(found.size() == 1);
    CHECK(found[0]["stack"] == kKept);
    CHECK(found[0]["label"] == 2);
    CHECK(found[0]["blocks"] == 60);  // all that it holds, as the holders have it
    CHECK(found[0]["bytes"] == 60 * bytes);
    CHECK(found[0]["growth"].size() == 20);
    CHECK(found[0]["growth"].back() == 60 * bytes);
    CHECK(found[0]["bytes_per_second"] > 0.0);
    CHECK(found[0]["bytes_per_step"].is_null());
  }
}

TEST_CASE("a block kept in one step of nine is a leak") {
  Script script;
  std::mt19937 random(4);
  for (int step = 0; step < 90; ++step) {
    work(script, random);
    if (step % 9 == 4) script.allocate(100, kKept);
  }
  CHECK(leaksIn(script).size() == 1);
}

TEST_CASE("a leak is found among blocks of the same stack that are freed") {
  Script script;
  std::mt19937 random(5);
  for (int step = 0; step < 40; ++step) {
    work(script, random, kKept);
    script.allocate(700, kKept);
  }
  CHECK(leaksIn(script).size() == 1);
}

TEST_CASE("faster leaks come first") {
  Script script;
  std::mt19937 random(6);
  for (int step = 0; step < 40; ++step) {
    work(script, random, 1);
    script.allocate(1000, kOther);
    script.allocate(3000, kKept);
  }
  const json found = leaksIn(script);
  REQUIRE(found.size() == 2);
  CHECK(found[0]["stack"] == kKept);
  CHECK(found[0]["bytes_per_second"].get<double>() >
        2.5 * found[1]["bytes_per_second"].get<double>());
}

TEST_CASE("a warm-up is no leak") {
  for (const int warm_up : {1, 10, 40, 70}) {  // of 100 steps
    CAPTURE(warm_up);
    Script script;
    std::mt19937 random(7);
    for (int step = 0; step < 100; ++step) {
      work(script, random);
      if (step < warm_up) script.allocate(5000, kKept);
    }
    CHECK(leaksIn(script).empty());
  }
}

TEST_CASE("a cache that fills up ever more slowly is no leak") {
  Script script;
  std::mt19937 random(8);
  std::vector<bool> cached(40);
  for (int step = 0; step < 200; ++step) {
    work(script, random);
    const std::size_t key = random() % cached.size();
    if (!cached[key]) script.allocate(300, kKept);
    cached[key] = true;
  }
  CHECK(leaksIn(script).empty());
}

TEST_CASE("a cache that replaces its oldest entry is no leak, also while it grows") {
  for (const int growth : {0, 3}) {
    CAPTURE(growth);
    Script script;
    std::mt19937 random(9);
    std::deque<int> entries;
    for (int step = 0; step < 300; ++step) {
      work(script, random);
      entries.push_back(script.allocate(400, kKept));
      if (entries.size() > 30 && (growth == 0 || step % growth != 0)) {
        script.free(entries.front());
        entries.pop_front();
      }
    }
    CHECK(leaksIn(script).empty());
  }
}

TEST_CASE("requests of random lifetimes in a steady state are no leak") {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Script script;
    std::mt19937 random(seed);
    std::vector<int> live;
    for (int event = 0; event < 4000; ++event) {
      if (random() % 64 < live.size()) {
        std::swap(live[random() % live.size()], live.back());
        script.free(live.back());
        live.pop_back();
      } else {
        live.push_back(script.allocate(random() % 100'000, int(1 + random() % 3)));
      }
    }
    CHECK(leaksIn(script).empty());
  }
}

TEST_CASE("a recording that ends within a step does not make a leak of the step's blocks") {
  Script script;
  for (int step = 0; step < 11; ++step) {
    std::vector<int> live;
    for (int i = 0; i < 50; ++i) live.push_back(script.allocate(1000, kOther));
    if (step == 10) break;
    for (const int block : live) script.free(block);
  }
  CHECK(leaksIn(script).empty());
}

TEST_CASE("a program that loads its data holds on to all, and leaks nothing") {
  Script script;
  for (int i = 0; i < 500; ++i) script.allocate(1 << 20, kKept);
  CHECK(leaksIn(script).empty());
}

TEST_CASE(
    "growth in each step is a leak if the program says that it steps, whatever else it does") {
  Script script;
  for (int step = 0; step < 12; ++step) {
    script.mark("step " + std::to_string(step));
    script.allocate(1 << 20, kKept);
  }
  CHECK(leaksIn(script).size() == 1);
}

TEST_CASE("growth is told by step, and from the oldest block on") {
  Script script;
  std::mt19937 random(8);
  for (int step = 0; step < 40; ++step) {
    script.mark("step " + std::to_string(step));
    work(script, random);
    if (step >= 8) script.allocate(3000, kKept);
  }
  const json found = leaksIn(script);
  REQUIRE(found.size() == 1);
  CHECK(found[0]["bytes_per_step"].get<double>() == 3000.0);
  CHECK(found[0]["first_us"] == 8 * 25 + 26);  // in the ninth step, after its mark and its work
  CHECK(found[0]["growth"][2].get<std::uint64_t>() <= 5 * 3000);
  CHECK(found[0]["growth"][0].get<std::uint64_t>() >= 3000);
}

TEST_CASE("a step with several marks is one step, if their names return") {
  Script script;
  std::mt19937 random(9);
  for (int step = 0; step < 40; ++step) {
    script.mark("zero_grad");
    work(script, random);
    script.mark("optimizer step");
    script.allocate(3000, kKept);
  }
  const json found = leaksIn(script);
  REQUIRE(found.size() == 1);
  CHECK(found[0]["bytes_per_step"] == 3000.0);
}

TEST_CASE("idle time between steps changes nothing") {
  Script script;
  std::mt19937 random(10);
  for (int step = 0; step < 60; ++step) {
    work(script, random);
    script.allocate(100, kKept, 0, step == 30 ? 1'000'000'000 : 1);
  }
  CHECK(leaksIn(script).size() == 1);
}

TEST_CASE("without stacks a leak is told by its size, else by the sum of all sizes") {
  Script one_size, many_sizes;
  std::mt19937 random(11);
  for (int step = 0; step < 80; ++step) {
    work(one_size, random, 0);
    one_size.allocate(777, 0);
    work(many_sizes, random, 0);
    many_sizes.allocate(10'000 + random() % 100'000, 0);
  }
  const json by_size = leaksIn(one_size);
  REQUIRE(by_size.size() == 1);
  CHECK(by_size[0]["size"] == 777);
  const json together = leaksIn(many_sizes);
  REQUIRE(together.size() == 1);
  CHECK(together[0]["size"].is_null());
}

TEST_CASE("a recording of one block has no leak") {
  Script one;
  one.allocate(1);
  CHECK(leaksIn(one).empty());
}

}  // namespace
}  // namespace cistern::report
