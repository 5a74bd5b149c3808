// Programs of kind periodic: that they repeat themselves exactly, for as long as is asked.
#include <algorithm>
#include <vector>

#include "interop/programs/generate.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::programs::testing {
namespace {

recording::Recording programOf(std::string_view name) { return generate(parseRecipes(name).at(0)); }

/// An event by which a repetition is known: the bytes of an allocation, or of a free how many
/// allocations came since its own.
struct Sign {
  bool allocates;
  std::uint64_t value;
  friend bool operator==(const Sign&, const Sign&) = default;
};

std::vector<Sign> signsOf(const recording::Recording& trace) {
  std::vector<Sign> signs;
  std::uint64_t allocations = 0;
  for (const recording::Event& event : trace.events) {
    allocations += event.kind == recording::EventKind::kAllocate;
    signs.push_back(
        {event.kind == recording::EventKind::kAllocate,
         event.kind == recording::EventKind::kAllocate ? event.value : allocations - event.value});
  }
  return signs;
}

/// The shortest period of the last `count` signs. Of Knuth, Morris and Pratt.
std::size_t periodOf(const std::vector<Sign>& signs, std::size_t count) {
  const std::vector<Sign> last(signs.rbegin(), signs.rbegin() + std::ptrdiff_t(count));
  std::vector<std::size_t> border(count + 1, 0);
  for (std::size_t i = 1, k = 0; i < count; ++i) {
    while (k > 0 && !(last[i] == last[k])) k = border[k];
    if (last[i] == last[k]) ++k;
    border[i + 1] = k;
  }
  return count - border[count];
}

/// From which event on the signs have this period.
std::size_t beginOfPeriods(const std::vector<Sign>& signs, std::size_t period) {
  std::size_t i = signs.size() - period;
  while (i > 0 && signs[i - 1] == signs[i - 1 + period]) --i;
  return i;
}

struct Survivors {
  std::size_t tensors = 0;  ///< of a period
  std::vector<std::uint64_t> bytes;
  std::uint64_t largest = 0;  ///< tensor of the period
};

/// Of the period before the last: those that were freed after their successors' allocation.
Survivors survivorsOf(const recording::Recording& trace, std::size_t period) {
  std::vector<std::size_t> allocated, freed(trace.allocations, trace.events.size());
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].kind == recording::EventKind::kAllocate) {
      allocated.push_back(i);
    } else {
      freed[trace.events[i].value] = i;
    }
  }
  const std::size_t begin = trace.events.size() - 3 * period;
  Survivors survivors;
  for (std::size_t i = 0; i < allocated.size(); ++i) {
    if (allocated[i] < begin || allocated[i] >= begin + period) continue;
    const std::uint64_t bytes = trace.events[allocated[i]].value;
    ++survivors.tensors;
    survivors.largest = std::max(survivors.largest, bytes);
    if (freed[i] > allocated[i] + period) survivors.bytes.push_back(bytes);
  }
  return survivors;
}

}  // namespace

TEST_CASE("a periodic program repeats itself exactly to its end") {
  int many_steps = 0, one_step = 0;
  for (const Recipe& recipe : parseRecipes(test::kSlowBuild ? "periodic:0-9" : "periodic:0-29")) {
    INFO(recipe.name());
    const recording::Recording trace = generate(recipe);
    const std::vector<Sign> signs = signsOf(trace);
    const std::size_t period = periodOf(signs, signs.size() * 2 / 3);
    CHECK(period <= signs.size() / 3);
    CHECK(period >= 80);
    // With an evaluation every 5 to 20 steps those are the period, else each step is at most. The
    // first one makes what lives on.
    const std::size_t two_steps = signs.size() / 30;
    (period > two_steps ? many_steps : one_step) += 1;
    CHECK(beginOfPeriods(signs, period) < std::max(period, two_steps) + two_steps);
  }
  CHECK(many_steps > 0);
  CHECK(one_step > 0);
}

TEST_CASE("some tensors of a step outlive their successors, in some programs the largest") {
  int seen = 0, largest = 0;
  for (const Recipe& recipe : parseRecipes(test::kSlowBuild ? "periodic:16-18" : "periodic:0-29")) {
    INFO(recipe.name());
    const recording::Recording trace = generate(recipe);
    const std::vector<Sign> signs = signsOf(trace);
    const std::size_t period = periodOf(signs, signs.size() * 2 / 3);
    const Survivors survivors = survivorsOf(trace, period);
    if (survivors.bytes.empty()) continue;  // the successor comes in the next micro-batch
    if (period > signs.size() / 30) continue;
    ++seen;
    CHECK(double(survivors.bytes.size()) >= 0.02 * double(survivors.tensors));
    CHECK(double(survivors.bytes.size()) <= 0.07 * double(survivors.tensors));
    largest +=
        *std::max_element(survivors.bytes.begin(), survivors.bytes.end()) == survivors.largest;
  }
  CHECK(seen >= 1);
  if (!test::kSlowBuild) CHECK(largest >= 1);
}

TEST_CASE("a longer program begins as a shorter one") {
  const recording::Recording usual = programOf("periodic:5"),
                             longer = programOf("periodic:5:steps=200");
  audit(longer);
  CHECK(usual.events == programOf("periodic:5:steps=60").events);
  CHECK(longer.name == "periodic:5:steps=200");
  REQUIRE(longer.events.size() > 3 * usual.events.size());
  CHECK(std::equal(usual.events.begin(), usual.events.end(), longer.events.begin()));
  CHECK(peakRequested(longer) == peakRequested(usual));
}

TEST_CASE("a twin with jitter has the allocations of its program") {
  const auto sizes_of = [](const recording::Recording& trace) {
    std::vector<std::uint64_t> sizes;
    for (const recording::Event& event : trace.events) {
      if (event.kind == recording::EventKind::kAllocate) sizes.push_back(event.value);
    }
    return sizes;
  };
  const recording::Recording program = programOf("periodic:5"),
                             twin = programOf("periodic:5:jitter=25");
  audit(twin);
  CHECK(twin.name == "periodic:5:jitter=25");
  CHECK(sizes_of(twin) == sizes_of(program));
  CHECK(signsOf(twin) != signsOf(program));
}

}  // namespace cistern::programs::testing
