// The table for people: one group of rows a trace, one row a policy, and below it what its figures
// mean.
#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/command/replay/report.hpp"
#include "interop/command/replay/table_columns.hpp"
#include "interop/command/replay/text.hpp"

namespace cistern::command {
namespace {

class TableReport final : public Report {
 public:
  TableReport(std::ostream& out, const ReplaySettings& settings,
              const std::vector<std::string>& traces, std::string device)
      : out_(out), settings_(settings), columns_(columnsFor(settings)), device_(std::move(device)) {
    for (const std::string& trace : traces) trace_width_ = std::max(trace_width_, trace.size());
  }

  void begin() override {
    const std::string header = line("trace", "policy", "peak asked",
                                    [](const Column& column) { return std::string(column.title); });
    out_ << '\n' << header << rule(header.size()) << std::flush;
  }

  // The trace's name and its peak stand once, in the first row of its group.
  void row(const Measurement& m) override {
    const bool first = m.policy == settings_.policies.front();
    if (first && !empty_) out_ << '\n';
    empty_ = false;
    out_ << line(first ? m.trace : "", m.policy, first ? formatBytes(m.peak_requested) : "",
                 [&](const Column& column) { return column.text(m); });
    if (!m.ok()) out_ << fmt::format("  {:{}}  ✗ {}\n", "", trace_width_, m.failure);
    out_ << std::flush;
  }

  void end() override {
    out_ << fmt::format("\nReplayed {}on {}.\n",
                        settings_.rounds == 1 ? "" : grouped(settings_.rounds) + " times ",
                        device_);
    for (const Column& column : columns_) {
      if (!column.meaning.empty()) out_ << column.meaning << '\n';
    }
    out_ << std::flush;
  }

  bool explainsFailures() const override { return true; }

 private:
  template <class TextOf>
  std::string line(std::string_view trace, std::string_view policy, std::string_view asked,
                   TextOf text_of) const {
    std::string text = fmt::format("  {:<{}}  {:<7}  {:>10}", trace, trace_width_, policy, asked);
    for (const Column& column : columns_) {
      text += fmt::format("  {:>{}}", text_of(column), column.width);
    }
    return text + '\n';
  }

  static std::string rule(std::size_t width) {
    std::string text = "  ";
    for (std::size_t i = 3; i < width; ++i) text += "─";
    return text + "\n";
  }

  std::ostream& out_;
  const ReplaySettings settings_;
  const std::vector<Column> columns_;
  const std::string device_;
  std::size_t trace_width_ = 5;  ///< of the word "trace" at least
  bool empty_ = true;
};

}  // namespace

std::unique_ptr<Report> tableReport(std::ostream& out, const ReplaySettings& settings,
                                    const std::vector<std::string>& traces, std::string device) {
  return std::make_unique<TableReport>(out, settings, traces, std::move(device));
}

}  // namespace cistern::command
