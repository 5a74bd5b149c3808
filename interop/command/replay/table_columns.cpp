#include "interop/command/replay/table_columns.hpp"

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/device/backends.hpp"
#include "interop/command/replay/grouped.hpp"

namespace cistern::command {
namespace {

constexpr const char* kNothing = "–";

std::string percent(const std::optional<double>& fraction) {
  if (!fraction) return kNothing;
  return *fraction < 9.9995 ? fmt::format("{:.1f} %", *fraction * 100) : "> 999 %";
}

/// In at most ten columns: "1023.99 MiB" loses a digit.
std::string cellBytes(std::uint64_t bytes) {
  std::string text = formatBytes(bytes);
  if (text.size() > 10) text.erase(text.find(' ') - 1, 1);
  return text;
}

/// In at most seven columns.
std::string cellCount(std::uint64_t number) {
  if (number < 1'000'000) return grouped(number);
  return number < 1'000'000'000 ? fmt::format("{:.1f}M", double(number) / 1e6)
                                : fmt::format("{:.3g}G", double(number) / 1e9);
}

std::string reserved(const Measurement& m) {
  return m.replayed() ? cellBytes(m.peak_reserved) : kNothing;
}
std::string efficiency(const Measurement& m) { return percent(m.efficiency()); }
std::string speed(const Measurement& m) {
  return m.replayed() ? fmt::format("{:.0f}", m.ns_per_event) : kNothing;
}
std::string calls(const Measurement& m) {
  return m.replayed() ? cellCount(totalOf(m.calls)) : kNothing;
}
std::string shareOfTime(const Measurement& m) { return percent(m.shareOfTime()); }

std::string fitsIn(const Measurement& m) {
  return m.fit_bytes ? capacityText(*m.fit_bytes) : kNothing;
}

std::string callersTime(const Measurement& m) {
  if (!m.modelled_ms) return kNothing;
  return *m.modelled_ms < 1e6 ? fmt::format("{:.1f}", *m.modelled_ms)
                              : fmt::format("{:.3g}", *m.modelled_ms);
}

// Each of these adds work to the loop that no policy does.
bool loopIsThePolicys(const ReplaySettings& s) {
  return s.gpu_lag_us == 0 && !s.check && s.threads == 1 && s.plot.empty();
}

}  // namespace

std::vector<Column> columnsFor(const ReplaySettings& s) {
  const bool modelled = isSimulated(s.device);
  std::vector<Column> columns;
  const auto add = [&](bool shown, const Column& column) {
    if (shown) columns.push_back(column);
  };
  add(true, {"reserved", 10, reserved,
             "reserved: the most that the policy took from the device at once."});
  add(true, {"in use", 7, efficiency, "in use: what the program asks for at its peak / reserved."});
  add(s.fit,
      {"fits in", 9, fitsIn,
       "fits in: the smallest cap on the policy that serves the whole trace, within 0.25 %."});
  add(loopIsThePolicys(s),
      {"ns/event", 8, speed,
       "ns/event: time of this machine's processor for each allocation and free."});
  add(!s.fit || !modelled,
      {"calls", 7, calls,
       "calls: to the driver, that the program waited for; not those in the background."});
  add(modelled, {"device ms", 9, callersTime,
                 "device ms: what the calls that the program waits for would take on a real GPU "
                 "(modelled)."});
  add(modelled, {"of time", 7, shareOfTime, "of time: device ms / the program's recorded time."});
  return columns;
}

}  // namespace cistern::command
