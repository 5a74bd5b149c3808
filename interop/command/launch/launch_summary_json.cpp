// The summary as JSON. See launch_summary.hpp.
#include <nlohmann/json.hpp>

#include "interop/command/launch/launch_summary.hpp"

namespace cistern::command {
namespace {

using Json = nlohmann::ordered_json;

Json jsonOf(const Account& a) {
  Json served = Json::object();
  for (std::size_t i = 0; i < preload::kServedCount; ++i) {
    served[a.named(preload::kServedNames[i])] = {{"calls", a.served[i].count},
                                                 {"nanoseconds", a.served[i].nanoseconds}};
  }
  Json passed = Json::object();
  for (std::size_t i = 0; i < preload::kPassedCount; ++i) {
    if (a.passed[i] != 0) passed[a.named(preload::kPassedNames[i])] = a.passed[i];
  }
  return {{"pid", a.pid},
          {"number", a.number()},
          {"program", a.program},
          {"device", a.device},
          {"vendor", a.vendor},
          {"exited", a.exited},
          {"served", served},
          {"passed", passed},
          {"driver_nanoseconds", a.driver_nanoseconds},
          {"requested_bytes", a.requested},
          {"requested_peak_bytes", a.requested_peak},
          {"reserved_bytes", a.reserved},
          {"reserved_peak_bytes", a.reserved_peak},
          {"host_reserved_bytes", a.host_reserved},
          {"host_reserved_peak_bytes", a.host_reserved_peak},
          {"work", a.work},
          {"unknown_work", a.unknown_work},
          {"unknown_functions", a.unknown_names},
          {"barriers", a.barriers},
          {"fences", a.fences},
          {"out_of_memory", a.out_of_memory},
          {"contexts", a.contexts},
          {"handles_given", a.handles_given},
          {"handles_opened", a.handles_opened},
          {"trace_events", a.trace_events}};
}

}  // namespace

std::string summaryJson(const std::vector<Account>& accounts, const Ending& ending) {
  Json processes = Json::array();
  for (const Account& account : accounts) processes.push_back(jsonOf(account));
  const Json all = {{"pid", ending.pid},
                    {"status", ending.status},
                    {"signal", ending.signal},
                    {"processes", processes}};
  // Bytes of a command line that are not UTF-8 become a replacement character.
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cistern::command
