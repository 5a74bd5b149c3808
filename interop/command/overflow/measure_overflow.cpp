#include "interop/command/overflow/measure_overflow.hpp"

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/printable.hpp"
#include "interop/command/console.hpp"
#include "interop/command/overflow/bus_bound.hpp"
#include "interop/command/overflow/iterations.hpp"
#include "interop/command/overflow/lifetimes.hpp"
#include "interop/command/overflow/overflow_policy.hpp"
#include "interop/command/replay/measure.hpp"
#include "interop/command/replay/replayer.hpp"
#include "interop/command/replay/stage.hpp"

namespace cistern::command {
namespace {

constexpr std::uint64_t kPage = 2 * kMiB;  // of the simulated device, at the least

std::uint64_t capacityFor(std::uint64_t need, unsigned share) {
  return roundUp(need / 100 * share + need % 100 * share / 100, kPage);
}

OverflowBound boundOf(const Script& script, const OverflowProgram& program,
                      std::uint64_t capacity) {
  const std::vector<Lifetime> lives = lifetimesOf(script);
  OverflowBound bound;
  bound.once = 2 * leastHostBytes(lives, capacity);
  bound.by_iteration = leastHostBytesByIteration(lives, program.starts, program.events, capacity);
  for (std::uint64_t& bytes : bound.by_iteration) bytes *= 2;
  return bound;
}

// The background thread's progress would depend on the scheduler (see cistern_policy.cpp).
OverflowRun runRule(const Script& script, const OverflowProgram& program, const OverflowRule& rule,
                    const ReplaySettings& settings, const OnProgress& on_progress) {
  OverflowRun run;
  run.rule = rule.name;
  if (script.stream_uses == trace::StreamUses::kMissing) {
    run.failure = usesMissing();
    return run;
  }
  Options options = settings.options;
  options.background_thread = false;
  Stage stage(settings, script.streams);
  const auto policy = rule.make(stage.device(), options);
  BusMeter meter(*policy, program.starts);
  Replayer replayer(script, stage, meter, nullptr, &meter, 1);
  if (!replayer.round(on_progress)) run.failure = replayer.failure();
  run.by_iteration = meter.iterations();
  return run;
}

}  // namespace

OverflowProgram overflowProgram(const Script& script) {
  const std::vector<std::uint64_t> living = livingBytes(script);
  OverflowProgram program{
      script.name,        script.file, script.shares_name, needOf(living), iterationStarts(living),
      script.steps.size()};
  if (capacityFor(program.need, kShares.front()) < program.need) return program;
  throw UsageError(fmt::format(
      "--overflow: {} needs {} at its peak, and {} % of it are as many pages of {} as all of it",
      printable(script.name), formatBytes(program.need), kShares.front(), formatBytes(kPage)));
}

OverflowCase measureOverflow(const Script& script, const OverflowProgram& program, unsigned share,
                             const ReplaySettings& settings, const OnProgress& on_progress) {
  OverflowCase result;
  result.share = share;
  result.capacity = capacityFor(program.need, share);
  result.bound = boundOf(script, program, result.capacity);
  ReplaySettings smaller = settings;
  smaller.device_bytes = result.capacity;
  const auto rules = overflowRules();
  for (const OverflowRule& rule : rules) {
    const double done = double(result.runs.size());
    const auto within = [&](double part) { on_progress((done + part) / double(rules.size())); };
    result.runs.push_back(runRule(script, program, rule, smaller, within));
  }
  return result;
}

}  // namespace cistern::command
