#include <ostream>

#include <nlohmann/json.hpp>

#include "interop/command/doctor/examination.hpp"

namespace cistern::command {
namespace {

using Json = nlohmann::ordered_json;

Json textOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json settingJson(const Setting& setting) {
  return {{"name", setting.name},
          {"value", setting.value},
          {"problem", textOrNull(setting.problem)},
          {"warning", textOrNull(setting.warning)}};
}

Json testJson(const Finding& test) {
  return {{"what", test.what}, {"skipped", test.skipped}, {"problem", textOrNull(test.problem)}};
}

template <class Items, class One>
Json listOf(const Items& items, One one) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(one(item));
  return list;
}

Json deviceJson(const DeviceFindings& device) {
  const bool told = device.memory_problem.empty();
  const bool pages = device.pages.supported && !device.pages.refused;
  Json json;
  json["ordinal"] = device.ordinal;
  json["name"] = device.name;
  json["total_bytes"] = told ? Json(device.memory.total_bytes) : Json(nullptr);
  json["free_bytes"] = told ? Json(device.memory.free_bytes) : Json(nullptr);
  json["memory_problem"] = textOrNull(device.memory_problem);
  json["page_bytes"] = pages ? Json(device.pages.granularity) : Json(nullptr);
  json["pages_refused"] = device.pages.refused;
  json["peers"] = device.peers;
  json["shares_pages"] = device.pages.exportable;
  json["shares_segments"] = device.can_share_segments;
  json["fabric"] = device.pages.fabric;
  json["tests"] = listOf(device.tests, testJson);
  return json;
}

Json backendJson(const BackendFindings& backend) {
  return {{"name", backend.name},
          {"missing", textOrNull(backend.missing)},
          {"runtime", textOrNull(backend.runtime)},
          {"devices", listOf(backend.devices, deviceJson)}};
}

}  // namespace

void printAsJson(const Examination& all, std::ostream& out) {
  Json json;
  json["version"] = CISTERN_VERSION;
  json["ok"] = all.ok();
  json["kernel_module"] = all.kernel_module ? Json(*all.kernel_module) : Json(nullptr);
  json["environment"] = listOf(all.environment, settingJson);
  json["backends"] = listOf(all.backends, backendJson);
  json["run"] = {{"library", textOrNull(all.run_library)},
                 {"problem", textOrNull(all.run_problem)}};
  const bool ascii_only = true;  // nothing of a name acts on a terminal
  out << json.dump(2, ' ', ascii_only, Json::error_handler_t::replace) << '\n';
}

}  // namespace cistern::command
