// --json: one object a line for each trace and policy. docs/replay.md lists the keys.
#include <cmath>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "interop/command/replay/replay_report.hpp"

namespace cistern::command {
namespace {

using Json = nlohmann::ordered_json;

template <class Value>
Json orNull(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json nonzeroCalls(const CallCounts& calls) {
  Json counts = Json::object();
  for (std::size_t i = 0; i < kCallCount; ++i) {
    if (calls[i] != 0) counts[std::string(callName(Call(i)))] = calls[i];
  }
  return counts;
}

Json pagesOf(const PageCounts& pages) {
  return {{"created", pages.created}, {"recycled", pages.recycled}, {"revived", pages.revived},
          {"retired", pages.retired}, {"returned", pages.returned}, {"freezes", pages.freezes}};
}

class JsonReport final : public Report {
 public:
  JsonReport(std::ostream& out, const ReplaySettings& settings) : out_(out), settings_(settings) {}

  void row(const Measurement& m) override {
    Json line;
    line["trace"] = m.trace;
    line["file"] = m.file.empty() ? Json(nullptr) : Json(m.file);
    line["policy"] = m.policy;
    line["device"] = m.device;
    line["events"] = m.events;
    line["ok"] = m.ok();
    line["peak_requested_bytes"] = m.peak_requested;
    const auto measured = [&](Json value) {
      return m.replayed() ? std::move(value) : Json(nullptr);
    };
    line["peak_reserved_bytes"] = measured(m.peak_reserved);
    line["efficiency"] = orNull(m.efficiency());
    line["fit"] = orNull(m.fit());
    line["fit_bytes"] = orNull(m.fit_bytes);
    const double ns = std::round(m.ns_per_event * 10) / 10;  // the clock knows no better
    line["ns_per_event"] = measured(ns);
    line["device_calls"] = measured(nonzeroCalls(m.calls));
    line["modelled_device_ms"] = orNull(m.modelled_ms);
    line["program_ms"] = orNull(m.program_ms);
    line["host_bytes_peak"] = measured(m.host_bytes_peak);
    line["background_calls"] = measured(nonzeroCalls(m.background_calls));
    line["modelled_background_ms"] = orNull(m.modelled_background_ms);
    line["pages"] = measured(pagesOf(m.pages));
    line["calls_by_round"] = measured(m.calls_by_round);
    line["failure"] = m.failure;
    line["checked"] = settings_.check;
    line["races"] = orNull(m.races);
    line["conf"] = orNull(confOf(settings_, m.policy));
    line["capacity_bytes"] = orNull(settings_.capacity);
    line["gpu_lag_us"] = settings_.gpu_lag_us;
    line["repeat"] = settings_.rounds;
    line["threads"] = settings_.threads;
    line["version"] = CISTERN_VERSION;
    const bool ascii_only = true;  // nothing of a name acts on a terminal, and nothing is lost
    out_ << line.dump(-1, ' ', ascii_only, Json::error_handler_t::replace) << std::endl;
  }

  bool explainsFailures() const override { return true; }

 private:
  std::ostream& out_;
  const ReplaySettings settings_;
};

}  // namespace

std::unique_ptr<Report> jsonReport(std::ostream& out, const ReplaySettings& settings) {
  return std::make_unique<JsonReport>(out, settings);
}

}  // namespace cistern::command
