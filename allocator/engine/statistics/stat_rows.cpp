#include "allocator/engine/statistics/stat_rows.hpp"

#include <fmt/format.h>

namespace cistern {
namespace {

void add(std::vector<StatRow>& rows, std::string_view name, std::uint64_t value) {
  rows.push_back({std::string(name), std::int64_t(value)});
}

void addValue(std::vector<StatRow>& rows, const std::string& name, const StatValue& value) {
  rows.push_back({name + ".current", value.current});
  rows.push_back({name + ".peak", value.peak});
  rows.push_back({name + ".allocated", value.allocated});
  rows.push_back({name + ".freed", value.freed});
}

void addPages(std::vector<StatRow>& rows, const PageCounts& pages) {
  add(rows, "pages.created", pages.created);
  add(rows, "pages.recycled", pages.recycled);
  add(rows, "pages.revived", pages.revived);
  add(rows, "pages.retired", pages.retired);
  add(rows, "pages.returned", pages.returned);
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", int(c));
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out += '"';
}

}  // namespace

std::vector<StatRow> statRows(const MemoryStats& stats) {
  std::vector<StatRow> rows;
  for (std::size_t s = 0; s < kStatCount; ++s) {
    const std::string name(statName(Stat(s)));
    addValue(rows, name + ".all", stats.all[s]);
    addValue(rows, name + ".small_pool", stats.small[s]);
    addValue(rows, name + ".large_pool", stats.large[s]);
  }
  add(rows, "num_alloc_retries", stats.num_alloc_retries);
  add(rows, "num_ooms", stats.num_ooms);
  add(rows, "num_sync_all_streams", stats.num_sync_all_streams);
  add(rows, "num_device_alloc", stats.num_device_alloc);
  add(rows, "num_device_free", stats.num_device_free);
  add(rows, "num_misuses", stats.num_misuses);
  addPages(rows, stats.pages);
  add(rows, "host_bytes", stats.host_bytes);
  add(rows, "peaks_exact", stats.peaks_exact ? 1 : 0);
  return rows;
}

std::string toJson(const std::vector<StatRow>& rows) {
  std::string out;
  for (const StatRow& row : rows) {
    out += fmt::format("{}{}:{}", out.empty() ? "{" : ",", quoted(row.name), row.value);
  }
  return out.empty() ? "{}" : out += '}';
}

}  // namespace cistern
