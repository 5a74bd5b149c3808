#include "interop/command/replay/table_columns.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/device/backends.hpp"
#include "interop/command/replay/grouped.hpp"

namespace cistern::command {
namespace {

constexpr const char* kNothing = "–";

std::string percent(const std::optional<double>& fraction) {
  return fraction ? fmt::format("{:.1f} %", *fraction * 100) : kNothing;
}
std::string milliseconds(const std::optional<double>& ms) {
  return ms ? fmt::format("{:.1f}", *ms) : kNothing;
}

std::string reserved(const Measurement& m) { return formatBytes(m.peak_reserved); }
std::string efficiency(const Measurement& m) { return percent(m.efficiency()); }
std::string fit(const Measurement& m) { return percent(m.fit); }
std::string speed(const Measurement& m) { return fmt::format("{:.0f}", m.ns_per_event); }
std::string calls(const Measurement& m) { return grouped(totalOf(m.calls)); }
std::string callersTime(const Measurement& m) { return milliseconds(m.modelled_ms); }
std::string backgroundTime(const Measurement& m) { return milliseconds(m.modelled_background_ms); }

std::string moved(const Measurement& m) {
  if (m.pages.created == 0) return kNothing;
  return grouped(m.pages.recycled + m.pages.revived);
}

/// Whether a row may have pages: none but the policy cistern's has.
bool withPages(const ReplaySettings& s) {
  return s.options.backing == Backing::kPages &&
         std::find(s.policies.begin(), s.policies.end(), "cistern") != s.policies.end();
}

}  // namespace

std::vector<Column> columnsFor(const ReplaySettings& s) {
  const bool modelled = isSimulated(s.device);
  std::vector<Column> columns;
  const auto add = [&](bool shown, const Column& column) {
    if (shown) columns.push_back(column);
  };
  add(true, {"reserved", 11, reserved,
             "reserved: the most that the policy took from the device at once."});
  add(true, {"efficiency", 10, efficiency,
             "efficiency: what the program asks for at its peak / reserved."});
  add(s.fit,
      {"fit", 7, fit,
       "fit: what it asks for at its peak / the smallest capacity that serves the whole trace."});
  add(true, {"ns/event", 8, speed,
             "ns/event: time of this machine's processor for each allocation and free."});
  add(true, {"calls", 9, calls,
             "calls: to the driver, that the program waited for; not those in the background."});
  add(modelled, {"device ms", 9, callersTime,
                 "device ms: what these calls would take on a real GPU (modelled)."});
  add(modelled && withPages(s),
      {"bg ms", 6, backgroundTime, "bg ms: the same of the calls made in the background."});
  add(withPages(s),
      {"moved", 7, moved,
       "moved: pages mapped where they were needed, or taken back into use, rather than "
       "new ones made."});
  return columns;
}

}  // namespace cistern::command
