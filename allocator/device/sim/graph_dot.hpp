// A graph in the DOT language, for a person to look at.
#pragma once

#include <iosfwd>

#include "allocator/device/sim/graph_body.hpp"

namespace cistern::sim {

/// A digraph with a line a node, labelled with its work's name and its stream, and a line an edge,
/// from what goes first to what follows it. Nodes are named node_0, node_1, … as they were
/// recorded.
void writeDot(const GraphBody& body, std::ostream& out);

}  // namespace cistern::sim
