// A captured graph: its work and what each piece of it follows. Immutable once its capture ended,
// and shared by the graph, its executables and their launches.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/base/types.hpp"
#include "allocator/device/sim/graph_order.hpp"
#include "allocator/device/sim/shadow.hpp"
#include "allocator/device/sim/work.hpp"

namespace cistern::sim {

/// Invariant: works, tags and after have one entry a node; after[i] names nodes less than i.
struct GraphBody {
  std::vector<std::shared_ptr<const Work>> works;
  std::vector<std::shared_ptr<const WorkTag>> tags;
  std::vector<std::vector<NodeId>> after;
  GraphOrder order;

  std::size_t size() const { return works.size(); }
};

}  // namespace cistern::sim
