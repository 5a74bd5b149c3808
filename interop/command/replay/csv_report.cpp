// --csv: what --json says, with one column a kind of device call, but one for all that were made in
// the background, and no rounds. The columns are always the same, and a null value there is empty
// here. A row is one line: what would break it stands in a name as \xNN.
#include <algorithm>
#include <string>
#include <string_view>

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
    "ns_per_event";

constexpr const char* kLastColumns =
    ",modelled_device_ms,host_bytes_peak,background_calls,modelled_background_ms,pages.created,"
    "pages.recycled,pages.revived,pages.retired,pages.returned";

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string("\"\"") : std::string(1, c);
  return field + "\"";
}

std::string orEmpty(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : std::string();
}

class CsvReport final : public Report {
 public:
  explicit CsvReport(std::ostream& out) : out_(out) {}

  void begin() override {
    out_ << kColumns;
    for (std::size_t i = 0; i < kCountedCalls; ++i) out_ << ",device_calls." << callName(Call(i));
    out_ << kLastColumns << std::endl;
  }

  void row(const Measurement& m) override {
    if (!m.replayed) return rowWithoutFigures(m);
    out_ << fmt::format("{},{},{},{},{},{},{},{},{},{:.1f}", quoted(printable(m.label())), m.policy,
                        m.device, m.events, m.ok(), m.peak_requested, m.peak_reserved,
                        orEmpty(m.efficiency()), orEmpty(m.fit), m.ns_per_event);
    for (std::size_t i = 0; i < kCountedCalls; ++i) out_ << ',' << m.calls[i];
    out_ << fmt::format(",{},{},{},{},", orEmpty(m.modelled_ms), m.host_bytes_peak,
                        totalOf(m.background_calls), orEmpty(m.modelled_background_ms))
         << fmt::format("{},{},{},{},{}", m.pages.created, m.pages.recycled, m.pages.revived,
                        m.pages.retired, m.pages.returned)
         << std::endl;
  }

 private:
  void rowWithoutFigures(const Measurement& m) {
    const std::string known = fmt::format("{},{},{},{},{},{}", quoted(printable(m.label())), m.policy,
                                          m.device, m.events, m.ok(), m.peak_requested);
    const auto commas = [](std::string_view text) {
      return std::count(text.begin(), text.end(), ',');
    };
    const auto columns = commas(kColumns) + std::ptrdiff_t(kCountedCalls) + commas(kLastColumns);
    constexpr std::ptrdiff_t kKnownCommas = 5;
    out_ << known << std::string(std::size_t(columns - kKnownCommas), ',') << std::endl;
  }

  std::ostream& out_;
};

}  // namespace

std::unique_ptr<Report> csvReport(std::ostream& out) { return std::make_unique<CsvReport>(out); }

}  // namespace cistern::command
