#include "bench/harness/run.hpp"

#include <map>
#include <thread>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allocator/base/bytes.hpp"
#include "bench/harness/median_reporter.hpp"
#include "bench/harness/session.hpp"
#include "cistern/error.hpp"

namespace cistern::bench {
namespace {

// A slow allocator sits out the cases with more than this over its slowness in live blocks.
constexpr std::uint64_t kMostSlowBlocks = 1'000'000;

/// The session of the case that runs now; those before it are closed, so that their memory is free.
class Stage {
 public:
  /// Only for the first thread, before the others are let go.
  void enter(const Case& what, const PeerEntry& entry) {
    if (what_ != &what || entry_ != &entry) {
      session_.reset();
      session_ = std::make_unique<Session>(what, entry);
      what_ = &what;
      entry_ = &entry;
    }
    session_->restart();
  }
  Session& session() { return *session_; }

 private:
  const Case* what_ = nullptr;
  const PeerEntry* entry_ = nullptr;
  std::unique_ptr<Session> session_;
};

// Google Benchmark holds all threads at the loop's first test until each has come there, and at its
// last test again: before the one the session is made, after the other all have added their times.
void timeCase(benchmark::State& state, Stage& stage, const Case& what, const PeerEntry& entry) {
  const auto thread = std::size_t(state.thread_index());
  const auto batch = benchmark::IterationCount(batchOf(what, entry));
  if (thread == 0) stage.enter(what, entry);
  while (state.KeepRunningBatch(batch)) {
    if (!stage.session().run(thread)) state.SkipWithError("out of memory");
  }
  stage.session().leave(thread);
  if (thread == 0) state.counters[kCounter] = stage.session().nanosecondsPerStep();
}

/// Why a case is left out for an allocator; empty when it is not.
std::string whyNot(const Case& what, const PeerEntry& entry) {
  if (what.bytes > entry.room.bytes) {
    return fmt::format("does not fit: needs {}, and there are {}", formatBytes(what.bytes),
                       formatBytes(entry.room.bytes));
  }
  if (what.blocks > entry.room.blocks) return "does not fit in the host's memory";
  if (what.largest > entry.room.largest) return "the system below serves such blocks each time";
  if (entry.slow_factor > 1 && what.blocks * entry.slow_factor > kMostSlowBlocks) {
    return "would take minutes";
  }
  return {};
}

/// What goes into the notes: for each reason, the cases that it holds for.
using Reasons = std::map<std::string, std::vector<std::string>>;

void registerCase(const Case& what, const PeerEntry& entry, Stage& stage) {
  const auto body = [&](benchmark::State& state) { timeCase(state, stage, what, entry); };
  const std::string name = Results::key(what.name, entry.name);
  auto* made = benchmark::RegisterBenchmark(name.c_str(), body)->UseRealTime();
  if (what.threads > 1) made->Threads(what.threads);
}

void registerOnAll(const Case& what, const Results& results, Stage& stage, Reasons& reasons) {
  const unsigned processors = std::thread::hardware_concurrency();
  if (unsigned(what.threads) > processors) {
    reasons[fmt::format("more threads than the {} processors", processors)].push_back(what.name);
  }
  for (const PeerEntry& entry : results.peers) {
    const std::string why = whyNot(what, entry);
    if (why.empty()) {
      registerCase(what, entry, stage);
    } else {
      reasons[fmt::format("left out: {}: {}", entry.name, why)].push_back(what.name);
    }
  }
}

void registerCases(const std::vector<Case>& cases, Results& results, Stage& stage) {
  Reasons reasons;
  for (const Case& what : cases) {
    results.cases.push_back(what.name);
    registerOnAll(what, results, stage, reasons);
  }
  for (const auto& [reason, names] : reasons) {
    results.notes.push_back(fmt::format("{}: {}", reason, fmt::join(names, ", ")));
  }
}

}  // namespace

Results runCases(CommandLine& line, const std::vector<Case>& cases) {
  const std::string device = line.takeOr("device", "sim");
  Roster roster = makeRoster(device, line.takeOr("peers", ""));
  std::vector<char*> unknown = startGoogleBenchmark(line, {"--benchmark_min_warmup_time=0.3"});
  if (benchmark::ReportUnrecognizedArguments(int(unknown.size()), unknown.data()))
    throw InvalidArgument("allowed: --device=sim|cuda|hip, --peers=NAME,..., --benchmark_...");
  Results results;
  results.peers = std::move(roster.peers);
  for (const auto& peer : roster.left_out) results.notes.push_back("left out: " + peer);
  Stage stage;
  registerCases(cases, results, stage);
  MedianReporter reporter(results.medians);
  benchmark::RunSpecifiedBenchmarks(&reporter);
  benchmark::ClearRegisteredBenchmarks();
  return results;
}

}  // namespace cistern::bench
