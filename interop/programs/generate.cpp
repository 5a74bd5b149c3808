#include "interop/programs/generate.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cistern/error.hpp"
#include "interop/programs/kinds.hpp"
#include "interop/programs/program.hpp"

namespace cistern::programs {

using recording::Recording;

/// The program's events by number, in their new order.
static std::vector<std::size_t> delayed(const Recording& program, unsigned percent,
                                        Random& random) {
  std::vector<std::pair<std::size_t, std::size_t>> order;  // the event that it follows, itself
  for (std::size_t i = 0; i < program.events.size(); ++i) {
    const bool late =
        program.events[i].kind == recording::EventKind::kFree && random.chance(percent);
    order.emplace_back(late ? i + random.between(1, 4) : i, i);
  }
  // An event comes before the frees that wait for it.
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    const bool a_late = a.first != a.second, b_late = b.first != b.second;
    return std::tuple(a.first, a_late, a.second) < std::tuple(b.first, b_late, b.second);
  });
  std::vector<std::size_t> events;
  for (const auto& [after, event] : order) events.push_back(event);
  return events;
}

Recording withJitter(const Recording& program, std::uint64_t percent, std::uint64_t seed) {
  Random random(seed);
  const GeneratorSite site;
  recording::RecordingBuilder builder(site, trace::Detail::kCalls);
  std::size_t at = 0;
  std::uint64_t last_us = 0;
  for (const std::size_t number : delayed(program, static_cast<unsigned>(percent), random)) {
    const recording::Event& event = program.events[number];
    if (event.kind == recording::EventKind::kAllocate) {
      builder.allocate(event.value, std::uint64_t(event.stream));
    } else {
      builder.free(event.value);
    }
    const std::uint64_t time_us = program.events[at++].time_us;
    builder.setDelta(time_us - std::exchange(last_us, time_us));
  }
  builder.rename(program.name);
  builder.setStreamUses(program.stream_uses);
  return builder.finish();
}

namespace {

constexpr std::uint64_t kLeastPeak = 500'000'000, kMostPeak = 60'000'000'000;
constexpr std::uint64_t kLeastEvents = 5'000, kMostEvents = 65'000;

constexpr std::array<Kind, 9> kKinds = {{
    {"train", "trains a network, each step with another shape"},
    {"stable", "trains a network, each step with the same shape"},
    {"sawtooth", "sequences or buffers grow from step to step, and begin again"},
    {"giants", "trains, and at times asks for most of its peak at once"},
    {"phases", "trains, evaluates and serves several networks in turn"},
    {"serve", "answers requests, each with a cache that grows by the token"},
    {"streams", "passes microbatches on between stages on streams of their own"},
    {"sampled", "draws graphs or points anew each step: no size comes again"},
    {.name = "periodic",
     .text = "repeats a step of training exactly, 60 times or :steps=N; all leaves it out",
     .in_all = false,
     .in_steps = true},
}};

struct Maker {
  void (*make)(Program&, Random&, std::uint64_t length);  ///< in events, or in steps
  std::uint64_t least_host_us = 4, most_host_us = 30;
};
constexpr std::array<Maker, 9> kMakers = {{
    {train},
    {trainStable},
    {sawtooth},
    {giants},
    {phases},
    {serve},
    {streams},
    {sampled},
    {periodic, 40, 90},
}};
static_assert(kKinds.size() == kMakers.size());

std::uint64_t seedOf(const Recipe& recipe, std::uint64_t attempt) {
  Random mixer(recipe.seed);
  Random with_kind(mixer.next() + recipe.kind);
  return with_kind.next() + attempt;
}

recording::Recording attempt(const Recipe& recipe, std::uint64_t number) {
  const Maker& maker = kMakers[recipe.kind];
  Random random(seedOf(recipe, number));
  Program program(random, random.between(maker.least_host_us, maker.most_host_us));
  maker.make(program, random,
             kKinds[recipe.kind].in_steps ? recipe.steps
                                          : random.logBetween(kLeastEvents + 1'000, 45'000));
  return program.finish(recipe.name());
}

bool fits(const recording::Recording& program) {
  const std::uint64_t peak = peakRequested(program);
  return peak >= kLeastPeak && peak <= kMostPeak && program.events.size() >= kLeastEvents &&
         program.events.size() <= kMostEvents;
}

[[noreturn]] void fail(std::string_view text) {
  std::vector<std::string_view> names{"all"};
  for (const Kind& kind : kKinds) names.push_back(kind.name);
  throw InvalidArgument(fmt::format(
      "'{}' names no program: must be KIND:SEED or KIND:FROM-TO, KIND one of {}, seeds whole "
      "numbers up to {}, at most {} programs; behind it may stand :jitter=PERCENT, and :steps=N of "
      "periodic, N from 1 to {}",
      text, fmt::join(names, ", "), kMostSeed, kMostRecipes, kMostSteps));
}

std::uint64_t numberFrom(std::string_view digits, std::uint64_t most, std::string_view text) {
  std::uint64_t number = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, number);
  if (error != std::errc() || end != last || number > most) fail(text);
  return number;
}

/// What stands before `separator` in `rest`, which keeps what stands behind it.
std::string_view cutAt(char separator, std::string_view& rest) {
  const std::size_t at = std::min(rest.find(separator), rest.size());
  const std::string_view cut = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return cut;
}

/// "steps=200:jitter=25", to a recipe that has neither. Pre: `settings` is a part of `text`.
void set(Recipe& recipe, std::string_view settings, bool in_steps, std::string_view text) {
  while (!settings.empty()) {
    std::string_view value = cutAt(':', settings);
    const std::string_view name = cutAt('=', value);
    if (name == "steps" && in_steps) {
      recipe.steps = numberFrom(value, kMostSteps, text);
    } else if (name == "jitter") {
      recipe.jitter = numberFrom(value, 100, text);
    } else {
      fail(text);
    }
  }
  if (recipe.steps == 0) fail(text);
}

bool standsFor(std::string_view name, const Kind& kind) {
  return name == kind.name || (name == "all" && kind.in_all);
}

}  // namespace

std::span<const Kind> kinds() { return kKinds; }

std::string Recipe::name() const {
  std::string name = fmt::format("{}:{}", kKinds[kind].name, seed);
  if (steps != kUsualSteps) name += fmt::format(":steps={}", steps);
  if (jitter != 0) name += fmt::format(":jitter={}", jitter);
  return name;
}

std::vector<Recipe> parseRecipes(std::string_view text) {
  std::string_view settings = text;
  const std::string_view name = cutAt(':', settings);
  std::string_view to_digits = cutAt(':', settings);
  const bool one = to_digits.find('-') == std::string_view::npos;
  const std::string_view from_digits = cutAt('-', to_digits);
  const std::uint64_t from = numberFrom(from_digits, kMostSeed, text);
  const std::uint64_t to = one ? from : numberFrom(to_digits, kMostSeed, text);
  if (text.ends_with(':') || to < from || to - from >= kMostRecipes / kKinds.size()) fail(text);
  std::vector<Recipe> recipes;
  for (std::uint64_t seed = from; seed <= to; ++seed) {
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      if (!standsFor(name, kKinds[kind])) continue;
      recipes.push_back({kind, seed});
      set(recipes.back(), settings, kKinds[kind].in_steps, text);
    }
  }
  if (recipes.empty()) fail(text);
  return recipes;
}

// The result of a draw is only known when it has been made; the next draw is as good. A program of
// another length is the same draw, so that it begins in the same way.
recording::Recording generate(const Recipe& recipe) {
  Recipe usual = recipe;
  usual.steps = kUsualSteps;
  std::uint64_t number = 0;
  recording::Recording program = attempt(usual, number);
  while (!fits(program)) program = attempt(usual, ++number);
  if (recipe != usual) program = attempt(recipe, number);
  return recipe.jitter == 0 ? program : withJitter(program, recipe.jitter, recipe.seed);
}

}  // namespace cistern::programs
