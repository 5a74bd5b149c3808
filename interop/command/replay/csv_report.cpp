// --csv: what --json says, with one column a kind of device call, but one for all that were made in
// the background, and no rounds. The columns are always the same, and a null value there is empty
// here. A row is one line: what would break it stands in a name as \xNN.
#include <string>

#include <fmt/format.h>

#include "allocator/base/printable.hpp"
#include "interop/command/replay/replay_report.hpp"

namespace cistern::command {
namespace {

// All but kOpen, which no device counts.
constexpr std::size_t kCountedCalls = kCallCount - 1;
static_assert(Call(kCountedCalls) == Call::kOpen);

constexpr const char* kColumns =
    "trace,policy,device,events,ok,peak_requested_bytes,peak_reserved_bytes,efficiency,fit,"
    "fit_bytes,ns_per_event";

constexpr const char* kLastColumns =
    ",modelled_device_ms,program_ms,host_bytes_peak,background_calls,modelled_background_ms,"
    "pages.created,pages.recycled,pages.revived,pages.retired,pages.returned,pages.freezes,"
    "checked,races,conf,capacity_bytes,gpu_lag_us,repeat,threads,version";

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
  return field + "\"";
}

template <class Value>
std::string orEmpty(const std::optional<Value>& value) {
  return value ? fmt::format("{}", *value) : std::string();
}

class CsvReport final : public Report {
 public:
  CsvReport(std::ostream& out, const ReplaySettings& settings) : out_(out), settings_(settings) {}

  void begin() override {
    out_ << kColumns;
    for (std::size_t i = 0; i < kCountedCalls; ++i) out_ << ",device_calls." << callName(Call(i));
    out_ << kLastColumns << std::endl;
  }

  void row(const Measurement& m) override {
    const auto measured = [&](const auto& value) {
      return m.replayed() ? fmt::format(",{}", value) : std::string(",");
    };
    out_ << fmt::format("{},{},{},{},{},{}", quoted(printable(m.label())), m.policy, m.device,
                        m.events, m.ok(), m.peak_requested)
         << measured(m.peak_reserved)
         << fmt::format(",{},{},{}", orEmpty(m.efficiency()), orEmpty(m.fit()),
                        orEmpty(m.fit_bytes))
         << measured(fmt::format("{:.1f}", m.ns_per_event));
    for (std::size_t i = 0; i < kCountedCalls; ++i) out_ << measured(m.calls[i]);
    out_ << fmt::format(",{},{}", orEmpty(m.modelled_ms), orEmpty(m.program_ms))
         << measured(m.host_bytes_peak) << measured(totalOf(m.background_calls)) << ','
         << orEmpty(m.modelled_background_ms);
    const PageCounts& pages = m.pages;
    for (const std::uint64_t count : {pages.created, pages.recycled, pages.revived, pages.retired,
                                      pages.returned, pages.freezes})
      out_ << measured(count);
    const ReplaySettings& s = settings_;
    out_ << fmt::format(",{},{},{},{},{},{},{},{}", s.check, orEmpty(m.races),
                        quoted(confOf(s, m.policy).value_or("")), orEmpty(s.capacity), s.gpu_lag_us,
                        s.rounds, s.threads, CISTERN_VERSION)
         << std::endl;
  }

 private:
  std::ostream& out_;
  const ReplaySettings settings_;
};

}  // namespace

std::unique_ptr<Report> csvReport(std::ostream& out, const ReplaySettings& settings) {
  return std::make_unique<CsvReport>(out, settings);
}

}  // namespace cistern::command
