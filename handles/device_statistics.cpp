#include <iterator>
#include <map>

#include "cistern/allocator.hpp"
#include "cistern/handles/library.hpp"
#include "handles/handle_statistics.hpp"
#include "handles/workspaces.hpp"

namespace cistern {
namespace {

void addTo(HandleCounts& sum, const HandleCounts& more) {
  sum.created += more.created;
  sum.live += more.live;
  sum.free += more.free;
  sum.destroyed += more.destroyed;
  sum.leaked += more.leaked;
}

std::vector<StatRow> handleRows(int device) {
  std::map<std::string, HandleCounts> libraries;
  for (const HandleStats& one : handleStatistics()) {
    if (one.device == device) addTo(libraries[one.library], one.handles);
  }
  std::vector<StatRow> rows;
  for (const auto& [library, counts] : libraries) {
    const std::string name = "handles." + library;
    rows.push_back({name + ".created", std::int64_t(counts.created)});
    rows.push_back({name + ".live", std::int64_t(counts.live)});
    rows.push_back({name + ".free", std::int64_t(counts.free)});
    rows.push_back({name + ".destroyed", std::int64_t(counts.destroyed)});
    rows.push_back({name + ".leaked", std::int64_t(counts.leaked)});
  }
  return rows;
}

std::vector<StatRow> workspaceRows(int device) {
  std::uint64_t count = 0, bytes = 0;
  for (const WorkspaceStats& one : workspaceStatistics()) {
    if (one.device != device) continue;
    count += one.count;
    bytes += one.bytes;
  }
  return {{"workspaces.count", std::int64_t(count)}, {"workspaces.bytes", std::int64_t(bytes)}};
}

}  // namespace

std::vector<StatRow> deviceStatistics(CachingAllocator& allocator) {
  const int device = allocator.device().ordinal();
  std::vector<StatRow> rows = statRows(allocator.memoryStats());
  for (std::vector<StatRow> more : {handleRows(device), workspaceRows(device)}) {
    rows.insert(rows.end(), std::move_iterator(more.begin()), std::move_iterator(more.end()));
  }
  return rows;
}

}  // namespace cistern
