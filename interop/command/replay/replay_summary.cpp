#include "interop/command/replay/replay_summary.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/command/replay/grouped.hpp"

namespace cistern::command {
namespace {

/// One policy's figures, added up over the traces.
struct Total {
  std::string policy;
  std::uint64_t asked = 0;
  std::uint64_t reserved = 0;
  std::uint64_t calls = 0;         ///< that the program waits for
  std::optional<double> ms = 0.0;  ///< of these; none on a real device
  double background_ms = 0;
};

void add(Total& total, const Measurement& m) {
  total.asked += m.peak_requested;
  total.reserved += m.peak_reserved;
  total.calls += totalOf(m.calls);
  if (!m.modelled_ms) total.ms.reset();
  if (total.ms) *total.ms += *m.modelled_ms;
  total.background_ms += m.modelled_background_ms.value_or(0);
}

std::string memoryAgainst(const Total& own, const Total& other) {
  if (own.reserved == other.reserved) return "as much as " + other.policy;
  const bool less = own.reserved < other.reserved;
  const std::uint64_t apart = less ? other.reserved - own.reserved : own.reserved - other.reserved;
  return fmt::format("{} ({:.1f} %) {} than {}", formatBytes(apart),
                     100 * double(apart) / double(std::max<std::uint64_t>(other.reserved, 1)),
                     less ? "less" : "more", other.policy);
}

std::string duration(double ms) {
  if (ms < 10) return fmt::format("{:.1f} ms", ms);
  return ms < 10'000 ? fmt::format("{:.0f} ms", ms) : fmt::format("{:.1f} s", ms / 1000);
}

/// "4,588 (71 ms, and 3.5 ms in the background)"; times only where they are known.
std::string cost(const Total& total) {
  if (!total.ms) return grouped(total.calls);
  const std::string background =
      total.background_ms < 0.05
          ? ""
          : fmt::format(", and {} in the background", duration(total.background_ms));
  return fmt::format("{} ({}{})", grouped(total.calls), duration(*total.ms), background);
}

std::string sentences(const std::vector<Total>& totals, std::size_t traces) {
  const Total& own = totals.front();
  std::string memory, calls;
  for (const Total& other : totals) {
    if (&other == &own) continue;
    memory += (memory.empty() ? ": " : ", ") + memoryAgainst(own, other);
    calls += fmt::format("{} under {} {}", calls.empty() ? ";" : ",", other.policy, cost(other));
  }
  const std::string programs =
      traces == 1 ? fmt::format("the program asks for {} at its peak", formatBytes(own.asked))
                  : fmt::format("the {} programs ask for {} at their peaks, added up", traces,
                                formatBytes(own.asked));
  return fmt::format(
      "In short: {}. {} reserves {} to serve {}{}. Calls to the driver that the program waits "
      "for: {}{}.",
      programs, own.policy, formatBytes(own.reserved), traces == 1 ? "it" : "them", memory,
      cost(own), calls);
}

}  // namespace

std::string summaryOf(const std::vector<Measurement>& rows,
                      const std::vector<std::string>& policies) {
  std::vector<Total> totals;
  for (const std::string& policy : policies) totals.push_back({policy});
  std::size_t traces = 0;
  for (auto row = rows.begin(); std::size_t(rows.end() - row) >= policies.size();) {
    const auto end = row + std::ptrdiff_t(policies.size());
    if (std::all_of(row, end, [](const Measurement& m) { return m.ok(); })) {
      for (std::size_t i = 0; i < totals.size(); ++i) add(totals[i], row[std::ptrdiff_t(i)]);
      ++traces;
    }
    row = end;
  }
  return traces == 0 ? "" : sentences(totals, traces);
}

}  // namespace cistern::command
