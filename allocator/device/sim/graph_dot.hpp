// A graph in the DOT language, for a person to look at.
#pragma once

#include <iosfwd>

#include "allocator/device/sim/graph_body.hpp"

namespace cistern::sim {

/// A digraph. Each node has a line, with its work's name and its stream as label. Each edge has a
/// line, from a node to one that follows it. Nodes are named node_0, node_1, … as they were
/// recorded.
void writeDot(const GraphBody& body, std::ostream& out);

}  // namespace cistern::sim
