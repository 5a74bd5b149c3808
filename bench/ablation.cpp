// What each mechanism of the heaps and of the pages buys: they are switched off one at a time
// (allocator/base/ablation.hpp), while recorded programs and made up ones are replayed on the
// simulated device. See docs/benchmarks.md.
#include "allocator/base/ablation.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "bench/harness/command_line.hpp"
#include "cistern/error.hpp"
#include "interop/command/replay/measure.hpp"
#include "interop/programs/generate.hpp"
#include "interop/recording/read_recording.hpp"

namespace cistern::bench {
namespace {

using command::Measurement;
using command::ReplaySettings;
using command::Script;

/// A row: what is switched off, by the code or by options.
struct Without {
  std::string_view what;
  Mechanism mechanism = Mechanism::kNone;
  std::string_view options = {};
};

constexpr std::array kRows{
    Without{"nothing", Mechanism::kNone},
    Without{"recycling", Mechanism::kRecycling},
    Without{"other heaps' pages before new ones", Mechanism::kOthersPages},
    Without{"only large requests move their heap's own", Mechanism::kOwnForLarge},
    Without{"pages go home at low water", Mechanism::kHoming},
    Without{"caches are emptied at low water", Mechanism::kFlushAtLowWater},
    Without{"a low that does not come again is forgotten", Mechanism::kLowWaterForgets},
    Without{"low water is a 64th above the low", Mechanism::kLowWaterSlack},
    Without{"requests return to their places of two rounds ago", Mechanism::kRounds},
    Without{"a heap whose round does not come to rest freezes", Mechanism::kFreeze},
    Without{"windows behind a stale mapping", Mechanism::kBehindStale},
    Without{"a window ends with a page of its last free block", Mechanism::kFreeCut},
    Without{"windows with fewest revivals", Mechanism::kFewestRevivals},
    Without{"a window at the range's end for large pages", Mechanism::kFreshWindow},
    Without{"cost controller", Mechanism::kCostController},
    Without{"credit for plain growth", Mechanism::kPlainCredit},
    Without{"a page grows as the root of its request", Mechanism::kRootOfRequest},
    Without{"a gap gets twelve pages at most", Mechanism::kPartOfGap},
    Without{"a page is a 2,048th of the limit at most", Mechanism::kPartOfLimit},
    Without{"sizes of pages are powers of two", Mechanism::kPowersOfTwo},
    Without{"a gap's pages are of one size", Mechanism::kEvenPages},
    Without{"a page reaches beyond its gap", Mechanism::kReachBeyond},
    Without{"largest page that fits the gap first", Mechanism::kLargestFitting},
    Without{"page unused for longest first", Mechanism::kOldestFirst},
    Without{"page in the smallest free block first", Mechanism::kSmallestBlock},
    Without{"epochs by the page", Mechanism::kPageEpochs},
    Without{"several events under way", Mechanism::kSeveralMarks},
    Without{"events at frees", Mechanism::kMarksAtFrees},
    Without{"progress noted before mappings are unmapped", Mechanism::kEarlyRefresh},
    Without{"misses help the background thread", Mechanism::kHelpBehind},
    Without{"stale mappings are unmapped", Mechanism::kUnmapLater},
    Without{"polls become rarer in vain", Mechanism::kBackoff},
    Without{"own stacks go back one by one before a miss", Mechanism::kStacksFirst},
    Without{"a large cached block goes back before a hit", Mechanism::kLastBack},
    Without{"neighbours are prefetched at a free", Mechanism::kExpectRelease},
    Without{"background thread", Mechanism::kNone, "background_thread:false"},
    Without{"thread caches", Mechanism::kNone, "thread_cache:off"},
};

/// One program under one row.
struct Figures {
  double first_e = 0, later_e = 0;    ///< after the first round, and after all
  double first_ms = 0, later_ms = 0;  ///< the caller's; of the first round, and of each later one
  std::vector<std::uint64_t> calls;   ///< by round
  double fit = 0;
  double ns_per_event = 0;
};

Figures figuresOf(const Script& script, ReplaySettings settings) {
  const auto silent = [](double) {};
  const auto run = [&] {
    Measurement row = measure(script, command::policyKind("cistern"), settings, silent);
    if (!row.ok()) throw Error(script.name + ": " + row.failure);
    return row;
  };
  const std::uint64_t rounds = settings.rounds;
  const Measurement all = run();
  settings.rounds = 1;
  const Measurement first = run();
  Figures f{*first.efficiency(), *all.efficiency(), *first.modelled_ms, 0, all.calls_by_round, 0,
            all.ns_per_event};
  f.later_ms = (*all.modelled_ms - f.first_ms) / double(rounds - 1);
  return f;
}

double fitOf(const Script& script, ReplaySettings settings) {
  settings.rounds = 1;
  settings.fit = true;
  settings.gpu_lag_us = 100'000;
  return measure(script, command::policyKind("cistern"), settings, [](double) {}).fit().value_or(0);
}

std::vector<Script> recorded() {
  std::vector<Script> scripts;
  const auto folder = std::filesystem::path(__FILE__).parent_path() / "traces";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file())
      scripts.push_back(command::makeScript(recording::readCalls(entry.path()).recordings.at(0)));
  }
  std::ranges::sort(scripts, {}, &Script::name);
  return scripts;
}

std::vector<Script> madeUp(const std::string& recipes) {
  std::vector<Script> scripts;
  for (const programs::Recipe& recipe : programs::parseRecipes(recipes))
    scripts.push_back(command::makeScript(programs::generate(recipe)));
  return scripts;
}

struct Row {
  std::string_view what;
  std::vector<Figures> recorded, made_up;
};

double meanOf(const std::vector<Figures>& all, double Figures::*of) {
  double sum = 0;
  for (const Figures& one : all) sum += one.*of;
  return all.empty() ? 0 : sum / double(all.size());
}

/// How much less E it has than with everything, where that is most.
double mostLost(const Row& row, const Row& everything, double Figures::*of) {
  double most = 0;
  for (std::size_t i = 0; i < row.made_up.size(); ++i)
    most = std::max(most, everything.made_up[i].*of - row.made_up[i].*of);
  return most;
}

using Cell = std::function<std::string(const Figures&)>;

/// A line for each row, a column for each recorded program.
void printTable(std::string_view title, const std::vector<Script>& scripts,
                const std::vector<Row>& rows, const Cell& cell) {
  std::string head = fmt::format("| {} |", title), rule = "|---|";
  for (const Script& script : scripts) {
    head += fmt::format(" {} |", script.name);
    rule += "---|";
  }
  fmt::print("\n{}\n{}\n", head, rule);
  for (const Row& row : rows) {
    fmt::print("| {} |", row.what);
    for (const Figures& figures : row.recorded) fmt::print(" {} |", cell(figures));
    fmt::print("\n");
  }
}

// The third round and those after it are alike as a rule.
std::string callsOf(const Figures& f) {
  const std::uint64_t most = *std::max_element(f.calls.begin() + 2, f.calls.end());
  return fmt::format("{} {} {}", f.calls[0], f.calls[1], most);
}

void printMeans(const std::vector<Row>& rows) {
  fmt::print(
      "\n| means | E | E, all rounds | ms | ms, later rounds | ns/event | made up: E | "
      "all rounds | lost at most | ms | ms, later rounds |\n|---|"
      "---|---|---|---|---|---|---|---|---|---|");
  for (const Row& row : rows) {
    const auto& r = row.recorded;
    const auto& m = row.made_up;
    fmt::print(
        "\n| {} | {:.4f} | {:.4f} | {:.1f} | {:.1f} | {:.0f} | {:.4f} | {:.4f} | {:.3f} {:.3f} | "
        "{:.1f} | {:.1f} |",
        row.what, meanOf(r, &Figures::first_e), meanOf(r, &Figures::later_e),
        meanOf(r, &Figures::first_ms), meanOf(r, &Figures::later_ms),
        meanOf(r, &Figures::ns_per_event), meanOf(m, &Figures::first_e),
        meanOf(m, &Figures::later_e), mostLost(row, rows.front(), &Figures::first_e),
        mostLost(row, rows.front(), &Figures::later_e), meanOf(m, &Figures::first_ms),
        meanOf(m, &Figures::later_ms));
  }
  fmt::print("\n");
}

void run(CommandLine& line) {
  ReplaySettings settings;
  settings.device = "sim";
  settings.rounds = 5;
  settings.gpu_lag_us = std::stoull(line.takeOr("lag-ms", "10")) * 1'000;
  const std::string only = line.takeOr("only", "");
  const bool fit = line.takeOr("fit", "no") == "yes";
  const std::vector<Script> scripts = recorded(),
                            made_up = madeUp(line.takeOr("generate", "all:500-504"));
  line.requireAllTaken("--only=TEXT, --fit=yes, --generate=KIND:SEEDS, --lag-ms=N");
  std::vector<Row> rows;
  for (const Without& without : kRows) {
    if (!rows.empty() && without.what.find(only) == std::string_view::npos) continue;
    switched_off = without.mechanism;
    settings.options = Options::parse(std::string(without.options));
    Row row{without.what, {}, {}};
    for (const Script& script : scripts) {
      row.recorded.push_back(figuresOf(script, settings));
      if (fit) row.recorded.back().fit = fitOf(script, settings);
    }
    for (const Script& script : made_up) row.made_up.push_back(figuresOf(script, settings));
    rows.push_back(std::move(row));
  }
  const auto two = [](double first, double later, int digits) {
    return fmt::format("{:.{}f} {:.{}f}", first, digits, later, digits);
  };
  printTable("E without", scripts, rows,
             [&](const Figures& f) { return two(f.first_e, f.later_e, 4); });
  printTable("ms without", scripts, rows,
             [&](const Figures& f) { return two(f.first_ms, f.later_ms, 1); });
  printTable("calls without", scripts, rows, callsOf);
  if (fit)
    printTable("fit without", scripts, rows,
               [](const Figures& f) { return fmt::format("{:.4f}", f.fit); });
  printMeans(rows);
}

}  // namespace
}  // namespace cistern::bench

int main(int argc, char** argv) {
  return cistern::bench::runProgram(argc, argv, cistern::bench::run);
}
