// All that is counted for one device, in one list: memory, handles, workspaces.
#pragma once

#include <vector>

#include "allocator/engine/statistics/stat_rows.hpp"

namespace cistern {

class CachingAllocator;

/// What the allocator counts (stat_rows.hpp), and then for its device
///   handles.<library>.created, .live, .free, .destroyed, .leaked   each library that has had any
///   workspaces.count, workspaces.bytes                             those of graphs included
/// Pools of the same library are added up. The three parts are read one after the other.
std::vector<StatRow> deviceStatistics(CachingAllocator& allocator);

}  // namespace cistern
