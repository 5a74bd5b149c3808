#include <utility>

#include <fmt/format.h>

#include "allocator/base/text.hpp"
#include "cistern/statistics.hpp"

namespace cistern {
namespace {

void addValue(std::vector<StatRow>& rows, const std::string& name, const StatValue& value) {
  rows.insert(rows.end(), {{name + ".current", value.current},
                           {name + ".peak", value.peak},
                           {name + ".allocated", value.allocated},
                           {name + ".freed", value.freed}});
}

}  // namespace

std::string_view statName(Stat stat) {
  static constexpr std::array<std::string_view, kStatCount> kNames = {
      "allocation",      "segment",        "active",       "inactive_split",
      "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
      "requested_bytes"};
  return kNames[std::size_t(stat)];
}

std::vector<StatRow> statRows(const MemoryStats& stats) {
  std::vector<StatRow> rows;
  for (std::size_t s = 0; s < kStatCount; ++s) {
    const std::string name(statName(Stat(s)));
    addValue(rows, name + ".all", stats.all[s]);
    addValue(rows, name + ".small_pool", stats.small_pool[s]);
    addValue(rows, name + ".large_pool", stats.large_pool[s]);
  }
  const std::pair<const char*, std::uint64_t> counts[] = {
      {"num_alloc_retries", stats.num_alloc_retries},
      {"num_ooms", stats.num_ooms},
      {"num_sync_all_streams", stats.num_sync_all_streams},
      {"num_device_alloc", stats.num_device_alloc},
      {"num_device_free", stats.num_device_free},
      {"num_misuses", stats.num_misuses},
      {"pages.created", stats.pages.created},
      {"pages.recycled", stats.pages.recycled},
      {"pages.revived", stats.pages.revived},
      {"pages.retired", stats.pages.retired},
      {"pages.returned", stats.pages.returned},
      {"pages.freezes", stats.pages.freezes},
      {"memory_call_ns", stats.memory_call_ns},
      {"host_bytes", stats.host_bytes},
      {"asleep_bytes", stats.asleep_bytes},
      {"asleep_host_bytes", stats.asleep_host_bytes},
      {"held_bytes", stats.held_bytes},
      {"host_page_bytes", stats.host_page_bytes},
      {"host_page_allocated_bytes", stats.host_page_allocated_bytes},
      {"peaks_exact", stats.peaks_exact}};
  for (const auto& [name, value] : counts) rows.push_back({name, std::int64_t(value)});
  return rows;
}

std::string toJson(const std::vector<StatRow>& rows) {
  std::string out;
  for (const StatRow& row : rows) {
    out += fmt::format("{}{}:{}", out.empty() ? "{" : ",", quotedJson(row.name), row.value);
  }
  return out.empty() ? "{}" : out += '}';
}

}  // namespace cistern
