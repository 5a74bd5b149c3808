// The table for people: one group of rows a trace, one row a policy, and below it what its figures
// mean.
#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/command/replay/report.hpp"
#include "interop/command/replay/text.hpp"

namespace cistern::command {
namespace {

constexpr const char* kNothing = "–";

std::string percent(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:.1f} %", *fraction * 100) : kNothing;
}
std::string milliseconds(const std::optional<double>& ms) {
  return ms ? fmt::format("{:.1f}", *ms) : kNothing;
}

class TableReport final : public Report {
 public:
  TableReport(std::ostream& out, const ReplaySettings& settings,
              const std::vector<std::string>& traces, std::string device)
      : out_(out), settings_(settings), device_(std::move(device)) {
    for (const std::string& trace : traces) trace_width_ = std::max(trace_width_, trace.size());
  }

  void begin() override {
    const std::string header = line("trace", "policy", "peak asked", "peak reserved", "efficiency",
                                    "fit", "ns/event", "device calls", "device ms");
    out_ << '\n' << header << rule(header.size()) << std::flush;
  }

  // The trace's name and its peak stand once, in the first row of its group.
  void row(const Measurement& m) override {
    const bool first = m.policy == settings_.policies.front();
    if (first && !empty_) out_ << '\n';
    empty_ = false;
    const std::string asked = first ? formatBytes(m.peak_requested) : "";
    out_ << line(first ? m.trace : "", m.policy, asked, formatBytes(m.peak_reserved),
                 percent(m.efficiency()), percent(m.fit), fmt::format("{:.0f}", m.ns_per_event),
                 grouped(totalOf(m.calls)), milliseconds(m.modelled_ms));
    if (!m.ok()) out_ << fmt::format("  {:{}}  ✗ {}\n", "", trace_width_, m.failure);
    out_ << std::flush;
  }

  void end() override {
    out_ << fmt::format(
        "\nReplayed {}on {}.\n"
        "efficiency: peak of bytes asked for / peak of bytes reserved on the device.\n",
        settings_.rounds == 1 ? "" : grouped(settings_.rounds) + " times ", device_);
    if (settings_.fit) {
      out_ << "fit: peak of bytes asked for / the smallest capacity that serves the whole trace.\n";
    }
    if (modelled()) {
      out_ << "device ms: what the device calls would take on a real GPU (modelled).\n";
    }
    out_ << std::flush;
  }

  bool explainsFailures() const override { return true; }

 private:
  bool modelled() const { return settings_.device == "sim"; }

  std::string line(std::string_view trace, std::string_view policy, std::string_view asked,
                   std::string_view reserved, std::string_view efficiency, std::string_view fit,
                   std::string_view speed, std::string_view calls, std::string_view ms) const {
    const std::string fit_column = settings_.fit ? fmt::format("  {:>7}", fit) : "";
    const std::string ms_column = modelled() ? fmt::format("  {:>9}", ms) : "";
    return fmt::format("  {:<{}}  {:<7}  {:>10}  {:>13}  {:>10}{}  {:>8}  {:>12}{}\n", trace,
                       trace_width_, policy, asked, reserved, efficiency, fit_column, speed, calls,
                       ms_column);
  }

  static std::string rule(std::size_t width) {
    std::string text = "  ";
    for (std::size_t i = 3; i < width; ++i) text += "─";
    return text + "\n";
  }

  std::ostream& out_;
  const ReplaySettings settings_;
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
