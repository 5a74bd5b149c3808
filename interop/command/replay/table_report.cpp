// The table for people. It has a line for each trace, and below it a row for each policy. At the
// end it has what was run, the meaning of the figures, and their summary. It fits a terminal of
// 80 columns; only a single word may be wider.
#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/printable.hpp"
#include "interop/command/replay/grouped.hpp"
#include "interop/command/replay/policy.hpp"
#include "interop/command/replay/replay_report.hpp"
#include "interop/command/replay/replay_summary.hpp"
#include "interop/command/replay/table_columns.hpp"
#include "interop/command/wrap.hpp"

namespace cistern::command {
namespace {

constexpr const char* kUsesNotSaid =
    "streams: a trace of several streams without stream_uses says nothing of uses that outlast a "
    "free (record_stream). Each free counts as ordered in its own stream: see docs/traces.md.";
constexpr std::size_t kNameWidth = 30;  // a longer one of a trace is cut

// A path differs from another most often at its end.
std::string titleOf(const Measurement& m) {
  if (!m.shares_name) return clipped(printable(m.trace), kNameWidth);
  const std::string name = clipped(printable(m.trace), kNameWidth / 2);
  const std::size_t left = kNameWidth - columnsOf(name) - columnsOf(" ()");
  return fmt::format("{} ({})", name, clippedInFront(printable(m.file), left));
}

class TableReport final : public Report {
 public:
  TableReport(std::ostream& out, const ReplaySettings& settings, std::string device, bool colours)
      : out_(out),
        settings_(settings),
        columns_(columnsFor(settings)),
        device_(std::move(device)),
        colours_(colours) {}

  void begin() override {
    const std::string header =
        line("policy", [](const Column& column) { return std::string(column.title); });
    out_ << '\n' << bold(header) << '\n' << rule(header.size()) << std::flush;
  }

  // The trace's name and its peak stand once, above its rows.
  void row(const Measurement& m) override {
    if (m.policy == settings_.policies.front()) {
      out_ << (rows_.empty() ? "" : "\n") << bold(titleOf(m))
           << fmt::format(": {} at its peak, {}\n", formatBytes(m.peak_requested),
                          counted(m.events, "event"));
    }
    out_ << line(m.policy, [&](const Column& column) { return column.text(m); }) << '\n';
    if (!m.ok()) printFailure(m.failure);
    out_ << std::flush;
    rows_.push_back(m);
  }

  void end() override {
    out_ << '\n';
    printSettings();
    out_ << '\n';
    for (const std::string& policy : settings_.policies) {
      out_ << wrapped(fmt::format("{}: {}.", policy, policyKind(policy).text), "  ", "");
    }
    for (const Column& column : columns_) out_ << wrapped(column.meaning, "  ", "");
    if (std::any_of(rows_.begin(), rows_.end(), [](const auto& m) { return m.uses_not_said; })) {
      out_ << wrapped(kUsesNotSaid, "  ", "");
    }
    printSummary();
    out_ << std::flush;
  }

  bool explainsFailures() const override { return true; }

 private:
  template <class TextOf>
  std::string line(std::string_view policy, TextOf text_of) const {
    std::size_t widest = 11;
    for (const std::string& name : settings_.policies) widest = std::max(widest, name.size());
    std::string text = fmt::format("  {:<{}}", policy, widest);
    for (const Column& column : columns_) {
      text += fmt::format("  {:>{}}", text_of(column), column.width);
    }
    return text;
  }

  static std::string rule(std::size_t width) {
    std::string text = "  ";
    for (std::size_t i = 2; i < width; ++i) text += "─";
    return text + "\n";
  }

  // The whole report of an allocator that is out of memory has several lines.
  void printFailure(const std::string& failure) {
    std::istringstream lines(printableLines(failure));
    const char* first = "    ✗ ";
    for (std::string text; std::getline(lines, text); first = "      ") {
      const std::string inner(std::min(text.find_first_not_of(' '), text.size()), ' ');
      const std::string indent = "      " + inner;
      out_ << red(wrapped(text.substr(inner.size()), indent + "  ", first + inner));
    }
  }

  void printSettings() {
    const ReplaySettings& s = settings_;
    const std::string rounds = s.rounds == 1 ? "" : counted(s.rounds, "time") + ' ';
    const std::string threads = s.threads == 1 ? "" : fmt::format("on {} threads ", s.threads);
    out_ << wrapped(fmt::format("Replayed {}{}on {}, by cistern {}.", rounds, threads, device_,
                                CISTERN_VERSION));
    if (s.capacity) {
      out_ << wrapped(fmt::format("Each policy may reserve {} at most.", formatBytes(*s.capacity)));
    }
    printOptions();
    if (s.check) out_ << wrapped(fmt::format("Checked for races: {}.", racesFound()));
  }

  std::string racesFound() const {
    std::uint64_t races = 0;
    for (const Measurement& row : rows_) races += row.races.value_or(0);
    return races == 0 ? "none found" : grouped(races) + " found, the first in the rows above";
  }

  // A policy that reads no options is not changed by $CISTERN_CONF either.
  void printOptions() {
    const std::string conf = settings_.options.conf();
    bool read = false;
    for (const std::string& policy : settings_.policies) {
      if (!confOf(settings_, policy)) continue;
      out_ << wrapped(
          fmt::format("Options of {}: {}.", policy, conf.empty() ? "the defaults" : conf));
      read = true;
    }
    if (!conf.empty() && !read) out_ << wrapped("No policy here reads options: " + conf + '.');
  }

  void printSummary() {
    const std::string summary = summaryOf(rows_, settings_.policies);
    if (!summary.empty()) out_ << '\n' << bold(wrapped(summary));
  }

  std::string bold(const std::string& text) const { return dressed("\x1b[1m", text); }
  std::string red(const std::string& text) const { return dressed("\x1b[31m", text); }
  std::string dressed(const char* how, const std::string& text) const {
    return colours_ ? how + text + "\x1b[0m" : text;
  }

  std::ostream& out_;
  const ReplaySettings settings_;
  const std::vector<Column> columns_;
  const std::string device_;
  const bool colours_;
  std::vector<Measurement> rows_;
};

}  // namespace

std::unique_ptr<Report> tableReport(std::ostream& out, const ReplaySettings& settings,
                                    std::string device, bool colours) {
  return std::make_unique<TableReport>(out, settings, std::move(device), colours);
}

}  // namespace cistern::command
