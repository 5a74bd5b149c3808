#include "interop/command/replay/measure.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "interop/command/replay/fit.hpp"
#include "interop/command/replay/replayer.hpp"
#include "interop/command/replay/reserved_watch.hpp"

namespace cistern::command {
namespace {

constexpr double kFirstShare = 0.1;  // of the time; the search takes about nine replays more
constexpr const char* kUsesMissing =
    "no figure: under this policy a freed block stays taken while other streams use it, and the "
    "trace does not say until when (stream_uses in docs/traces.md)";

bool playAllRounds(Replayer& replayer, std::uint64_t rounds, const OnProgress& on_progress) {
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const auto within = [&](double done) { on_progress((double(i) + done) / double(rounds)); };
    if (!replayer.round(within)) return false;
  }
  return true;
}

/// The figures that are known before anything is replayed.
Measurement factsOf(const Script& script, const PolicyKind& kind, const ReplaySettings& s) {
  Measurement m;
  m.trace = script.name;
  m.file = script.file;
  m.shares_name = script.shares_name;
  m.policy = kind.name;
  m.device = s.device;
  m.events = script.steps.size();
  m.peak_requested = script.peak_requested;
  m.uses_not_said = script.streams > 1 && script.stream_uses == recording::StreamUses::kNotSaid;
  if (script.duration_us > 0) m.program_ms = double(script.duration_us) / 1e3 * double(s.rounds);
  return m;
}

/// Why the policy has no figure of the trace; empty if it has one.
std::string reasonAgainst(const Script& script, const PolicyKind& kind, const ReplaySettings& s) {
  if (s.capacity && !kind.takes_capacity) return cannotBeHeld(kind.name);
  const bool lacks = script.stream_uses == recording::StreamUses::kMissing;
  return kind.waits_for_uses && lacks ? kUsesMissing : "";
}

void addFigures(Measurement& m, const Meter& meter) {
  m.ns_per_event = meter.wallNanoseconds() / double(std::max<std::uint64_t>(meter.events(), 1));
  m.calls = meter.bill().callersCalls();
  m.modelled_ms = double(meter.bill().modelled_ns) / 1e6;
  m.background_calls = meter.bill().background_calls;
  m.modelled_background_ms = double(meter.bill().modelled_background_ns) / 1e6;
  m.calls_by_round = meter.callsByRound();
}

Measurement replay(const Script& script, const PolicyKind& kind, const ReplaySettings& settings,
                   std::optional<std::uint64_t> capacity, const OnProgress& on_progress) {
  Stage stage(settings, script.streams);
  const auto policy = kind.make(stage.device(), {settings.options, capacity});
  std::optional<Checker> checker;
  if (settings.check) checker.emplace(*stage.sim());
  std::optional<ReservedWatch> watch;
  if (!settings.plot.empty()) watch.emplace(*policy, Timeline(script, settings.rounds));
  Replayer replayer(script, stage, *policy, checker ? &*checker : nullptr,
                    watch ? &*watch : nullptr, settings.threads);

  const bool served = playAllRounds(replayer, settings.rounds, on_progress);
  Measurement m = factsOf(script, kind, settings);
  addFigures(m, replayer.meter());
  if (!served) m.failure = replayer.failure();
  if (checker && served) m.failure = checker->verdict();
  if (checker) m.races = checker->races();
  m.peak_reserved = policy->reserved().peak;
  if (watch) m.reserved_over_time = watch->reserved();
  m.host_bytes_peak = replayer.hostBytesPeak();
  m.pages = policy->pageCounts();
  if (stage.sim() == nullptr) {
    m.modelled_ms.reset();
    m.modelled_background_ms.reset();
  }
  return m;
}

// The unlimited replay has shown what is enough. The device stays as it was: it is the policy that
// is held to less.
std::uint64_t fitOf(const Measurement& unlimited, const Script& script, const PolicyKind& kind,
                    const ReplaySettings& settings, const OnProgress& on_progress) {
  ReplaySettings probe = settings;
  probe.check = false;
  probe.plot.clear();
  const auto served = [&](std::uint64_t capacity) {
    return replay(script, kind, probe, capacity, [](double) {}).ok();
  };
  return leastCapacity(unlimited.peak_requested, unlimited.peak_reserved, served, on_progress);
}

}  // namespace

std::string cannotBeHeld(std::string_view policy) {
  return fmt::format("policy {} cannot be held to a --capacity", policy);
}

Measurement measure(const Script& script, const PolicyKind& kind, const ReplaySettings& settings,
                    const OnProgress& on_progress) {
  if (std::string reason = reasonAgainst(script, kind, settings); !reason.empty()) {
    Measurement m = factsOf(script, kind, settings);
    m.failure = std::move(reason);
    return m;
  }
  const bool search = settings.fit && kind.takes_capacity;
  const double first_share = search ? kFirstShare : 1;
  Measurement m = replay(script, kind, settings, settings.capacity,
                         [&](double done) { on_progress(done * first_share); });
  if (search && m.efficiency()) {
    m.fit_bytes = fitOf(m, script, kind, settings,
                        [&](double done) { on_progress(first_share + done * (1 - first_share)); });
  }
  return m;
}

}  // namespace cistern::command
