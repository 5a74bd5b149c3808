#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench/harness/results.hpp"

namespace cistern::bench {
namespace {

using Cells = std::vector<std::string>;

void printRow(const Cells& cells) { fmt::print("| {} |\n", fmt::join(cells, " | ")); }

void printHead(const Cells& cells) {
  printRow(cells);
  fmt::print("|{}\n", fmt::join(Cells(cells.size(), "---|"), ""));
}

std::string nanoseconds(double value) {
  return value < 100 ? fmt::format("{:.1f}", value) : fmt::format("{:.0f}", value);
}

bool has(const Results& results, Family family) {
  return std::any_of(results.peers.begin(), results.peers.end(),
                     [&](const auto& peer) { return peer.family == family; });
}

std::optional<double> fastest(const Results& results, const std::string& what, Family family) {
  std::optional<double> best;
  for (const auto& peer : results.peers) {
    if (peer.family != family) continue;
    const auto median = results.median(what, peer.name);
    if (median && (!best || *median < *best)) best = median;
  }
  return best;
}

/// The first peer's time over the fastest of the family: below 1, the first peer is faster.
std::string ratioTo(const Results& results, const std::string& what, Family family) {
  const auto measured = results.median(what, results.peers.front().name);
  const auto other = fastest(results, what, family);
  return measured && other ? fmt::format("{:.2f}", *measured / *other) : "-";
}

bool anyMedian(const Results& results, const std::string& what) {
  return std::any_of(results.peers.begin(), results.peers.end(),
                     [&](const auto& peer) { return results.median(what, peer.name).has_value(); });
}

Cells header(const Results& results) {
  Cells cells{"ns per step"};
  for (const auto& peer : results.peers) cells.push_back(peer.name);
  if (has(results, Family::kHost)) cells.emplace_back("/ fastest host");
  if (has(results, Family::kGpu)) cells.emplace_back("/ fastest GPU");
  return cells;
}

Cells row(const Results& results, const std::string& what) {
  Cells cells{what};
  for (const auto& peer : results.peers) {
    const auto median = results.median(what, peer.name);
    cells.push_back(median ? nanoseconds(*median) : "-");
  }
  if (has(results, Family::kHost)) cells.push_back(ratioTo(results, what, Family::kHost));
  if (has(results, Family::kGpu)) cells.push_back(ratioTo(results, what, Family::kGpu));
  return cells;
}

std::string scaled(const Results& results, const std::string& what, const std::string& base,
                   const std::string& peer) {
  const auto median = results.median(what, peer);
  const auto at_base = results.median(base, peer);
  if (!median) return "-";
  if (!at_base) return nanoseconds(*median);
  return fmt::format("{} ({:.2f}x)", nanoseconds(*median), *median / *at_base);
}

}  // namespace

void printTable(const Results& results) {
  fmt::print("\n");
  printHead(header(results));
  for (const auto& what : results.cases) {
    if (anyMedian(results, what)) printRow(row(results, what));
  }
  if (!results.notes.empty()) fmt::print("\n{}\n", fmt::join(results.notes, "\n"));
}

void printScaling(const Results& results, const std::string& prefix, const std::string& base) {
  Cells columns;
  std::copy_if(
      results.cases.begin(), results.cases.end(), std::back_inserter(columns),
      [&](const auto& what) { return what.starts_with(prefix) && anyMedian(results, what); });
  if (columns.size() < 2) return;
  Cells head{"against " + base};
  head.insert(head.end(), columns.begin(), columns.end());
  fmt::print("\n");
  printHead(head);
  for (const auto& peer : results.peers) {
    Cells cells{peer.name};
    for (const auto& what : columns) cells.push_back(scaled(results, what, base, peer.name));
    printRow(cells);
  }
}

}  // namespace cistern::bench
