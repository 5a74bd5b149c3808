// Programs that are made up: what a name stands for, what all of them keep to, and that they are
// the same wherever they are made.
#include "interop/programs/generate.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "cistern/error.hpp"
#include "interop/programs/program.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/slow_build.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::programs::testing {
namespace {

/// Of all that a trace says, in order.
std::uint64_t digest(const recording::Recording& trace) {
  std::uint64_t hash = 14'695'981'039'346'656'037u;
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 1'099'511'628'211u; };
  std::uint64_t last_us = 0;
  for (const recording::Event& event : trace.events) {
    mix(event.value);
    mix(event.time_us - std::exchange(last_us, event.time_us));
    mix(std::uint64_t(event.stream));
    mix(event.kind == recording::EventKind::kAllocate ? 1 : 0);
  }
  return hash;
}

std::vector<std::string> namesOf(std::string_view text) {
  std::vector<std::string> names;
  for (const Recipe& recipe : parseRecipes(text)) names.push_back(recipe.name());
  return names;
}

std::uint64_t distinctSizes(const recording::Recording& trace) {
  std::set<std::uint64_t> sizes;
  for (const recording::Event& event : trace.events) {
    if (event.kind == recording::EventKind::kAllocate) sizes.insert(event.value);
  }
  return sizes.size();
}

recording::Recording made(std::string_view name) { return generate(parseRecipes(name).at(0)); }

}  // namespace

TEST_CASE("a name stands for a kind and a seed, a range of seeds, or every kind of them") {
  CHECK(namesOf("train:7") == std::vector<std::string>{"train:7"});
  CHECK(namesOf("serve:3-5") == std::vector<std::string>{"serve:3", "serve:4", "serve:5"});
  const std::vector<Recipe> all = parseRecipes("all:10-11");
  REQUIRE(all.size() == 2 * 8);  // tables of measurements rest on it
  CHECK(all.front() == Recipe{0, 10});
  CHECK(all.back() == Recipe{7, 11});
}

TEST_CASE("a name may say how many steps, and how many frees are late") {
  const Recipe recipe = parseRecipes("periodic:7:steps=200:jitter=25").at(0);
  CHECK(recipe.steps == 200);
  CHECK(recipe.jitter == 25);
  CHECK(recipe.name() == "periodic:7:steps=200:jitter=25");
  CHECK(parseRecipes(recipe.name()).at(0) == recipe);
  CHECK(namesOf("periodic:7:steps=60:jitter=0") == std::vector<std::string>{"periodic:7"});
  CHECK(namesOf("train:3-4:jitter=100") ==
        std::vector<std::string>{"train:3:jitter=100", "train:4:jitter=100"});
  CHECK(parseRecipes("all:1:jitter=5").size() == 8);
}

TEST_CASE("what names no program is refused with what is allowed") {
  for (const char* text : {"",
                           "train",
                           "train:",
                           ":7",
                           "trains:7",
                           "train:x",
                           "train:-1",
                           "train:7-",
                           "train:9-8",
                           "train:1000000001",
                           "all:0-12500",
                           "train:1-2-3",
                           "train:18446744073709551617",
                           "train:7:",
                           "train:7:steps=5",
                           "all:7:steps=5",
                           "periodic:7:steps=0",
                           "periodic:7:steps=10001",
                           "periodic:7:steps",
                           "periodic:7:steps=",
                           "periodic:7:jitter=101",
                           "periodic:7:jitter=5:",
                           "periodic:7:late=5",
                           "periodic:7::jitter=5"}) {
    INFO(text);
    CHECK_THROWS_WITH(parseRecipes(text),
                      ContainsSubstring("KIND:SEED") && ContainsSubstring("all, train, stable"));
  }
}

TEST_CASE("every program keeps to the sizes that are promised, and is a sound trace") {
  const char* const seeds = test::kSlowBuild ? ":0" : ":0-5";
  std::vector<Recipe> recipes;
  for (const Kind& kind : kinds()) {
    for (const Recipe& recipe : parseRecipes(std::string(kind.name) + seeds))
      recipes.push_back(recipe);
  }
  for (const Recipe& recipe : recipes) {
    const recording::Recording trace = generate(recipe);
    INFO(recipe.name());
    audit(trace);
    CHECK(trace.name == recipe.name());
    CHECK(peakRequested(trace) >= 500'000'000);
    CHECK(peakRequested(trace) <= 60'000'000'000);
    CHECK(trace.events.size() >= 5'000);
    CHECK(trace.events.size() <= 65'000);
    CHECK(trace.events.back().time_us >= 100'000);
  }
}

TEST_CASE("a program is the same each time, and another one with another seed") {
  CHECK(made("phases:3").events == made("phases:3").events);
  CHECK(digest(made("phases:3")) != digest(made("phases:4")));
}

// A change here makes all figures that were taken with these programs others.
TEST_CASE("programs are what they were, on every platform") {
  const std::vector<std::pair<const char*, std::uint64_t>> known = {
      {"train:1", 0x1b3efeeb74f949e6u},    {"stable:1", 0xc6161010c370d0a6u},
      {"sawtooth:1", 0x811ec7ca325627f6u}, {"giants:1", 0xa3f48411c46cc3b5u},
      {"phases:1", 0xb040e436cab2652eu},   {"serve:1", 0x1c5ae159f4bfdf1eu},
      {"streams:1", 0x4f071b1c521d1706u},  {"sampled:1", 0x8df43fbc6ce1e251u},
      {"periodic:1", 0xb902bd7ff5084536u},
  };
  REQUIRE(known.size() == kinds().size());
  for (const auto& [name, expected] : known) {
    INFO(name);
    CHECK(digest(made(name)) == expected);
  }
}

TEST_CASE("kinds differ in what they are named for") {
  CHECK(distinctSizes(made("stable:1")) < 200);
  CHECK(distinctSizes(made("sampled:1")) > 1'000);
  CHECK(made("streams:1").streams.size() >= 2);
  CHECK(made("train:1").streams.size() == 1);
}

TEST_CASE("numbers are drawn within their bounds, and each doubling as often") {
  Random random(1);
  int small = 0;
  for (int i = 0; i < 10'000; ++i) {
    CHECK(random.between(5, 9) - 5 <= 4);
    const std::uint64_t drawn = random.logBetween(3, 3'000);
    CHECK((drawn >= 3 && drawn <= 3'000));
    if (drawn < 100) ++small;
  }
  CHECK(small > 4'000);
  CHECK(small < 6'000);
}

}  // namespace cistern::programs::testing
