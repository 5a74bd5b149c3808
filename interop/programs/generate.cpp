#include "interop/programs/generate.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cistern/error.hpp"
#include "interop/programs/kinds.hpp"

namespace cistern::programs {
namespace {

constexpr std::uint64_t kLeastPeak = 500'000'000, kMostPeak = 60'000'000'000;
constexpr std::uint64_t kLeastEvents = 5'000, kMostEvents = 65'000;

constexpr std::array<Kind, 8> kKinds = {{
    {"train", "trains a network, each step with another shape"},
    {"stable", "trains a network, each step with the same shape"},
    {"sawtooth", "sequences or buffers grow from step to step, and begin again"},
    {"giants", "trains, and at times asks for most of its peak at once"},
    {"phases", "trains, evaluates and serves several networks in turn"},
    {"serve", "answers requests, each with a cache that grows by the token"},
    {"streams", "passes microbatches on between stages on streams of their own"},
    {"sampled", "draws graphs or points anew each step: no size comes again"},
}};
using Make = void (*)(Program&, Random&, std::uint64_t events);
constexpr std::array<Make, 8> kMakes = {train,  trainStable, sawtooth, giants,
                                        phases, serve,       streams,  sampled};
static_assert(kKinds.size() == kMakes.size());

std::uint64_t seedOf(const Recipe& recipe, std::uint64_t attempt) {
  Random mixer(recipe.seed);
  Random with_kind(mixer.next() + recipe.kind);
  return with_kind.next() + attempt;
}

trace::Trace attempt(const Recipe& recipe, std::uint64_t number) {
  Random random(seedOf(recipe, number));
  Program program(random, random.between(4, 30));
  kMakes[recipe.kind](program, random, random.logBetween(kLeastEvents + 1'000, 45'000));
  return program.finish(recipe.name());
}

bool fits(const trace::Trace& trace) {
  return trace.peak_requested_bytes >= kLeastPeak && trace.peak_requested_bytes <= kMostPeak &&
         trace.events.size() >= kLeastEvents && trace.events.size() <= kMostEvents;
}

[[noreturn]] void fail(std::string_view text) {
  std::vector<std::string_view> names{"all"};
  for (const Kind& kind : kKinds) names.push_back(kind.name);
  throw InvalidArgument(fmt::format(
      "'{}' names no program: must be KIND:SEED or KIND:FROM-TO, KIND one of {}, seeds whole "
      "numbers up to {}, at most {} programs",
      text, fmt::join(names, ", "), kMostSeed, kMostRecipes));
}

std::uint64_t seedFrom(std::string_view digits, std::string_view text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
  if (error != std::errc() || end != digits.data() + digits.size() || seed > kMostSeed) fail(text);
  return seed;
}

}  // namespace

std::span<const Kind> kinds() { return kKinds; }

std::string Recipe::name() const { return fmt::format("{}:{}", kKinds[kind].name, seed); }

std::vector<Recipe> parseRecipes(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  const std::string_view seeds = text.substr(std::min(colon + 1, text.size()));
  const std::size_t dash = seeds.find('-');
  const std::uint64_t from = seedFrom(seeds.substr(0, dash), text);
  const std::uint64_t to =
      dash == std::string_view::npos ? from : seedFrom(seeds.substr(dash + 1), text);
  if (to < from || to - from >= kMostRecipes / kKinds.size()) fail(text);
  std::vector<Recipe> recipes;
  for (std::uint64_t seed = from; seed <= to; ++seed) {
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      if (name == "all" || name == kKinds[kind].name) recipes.push_back({kind, seed});
    }
  }
  if (recipes.empty()) fail(text);
  return recipes;
}

// The result of a draw is only known when it has been made; the next draw is as good.
trace::Trace generate(const Recipe& recipe) {
  for (std::uint64_t number = 0;; ++number) {
    trace::Trace trace = attempt(recipe, number);
    if (fits(trace)) return trace;
  }
}

}  // namespace cistern::programs
