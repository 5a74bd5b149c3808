#include "allocator/device/sim/graph_dot.hpp"

#include <ostream>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace cistern::sim {
namespace {

/// As it stands between quotes: a name may have any characters.
std::string escaped(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted;
}

}  // namespace

void writeDot(const GraphBody& body, std::ostream& out) {
  out << fmt::format("digraph capture_{} {{\n", body.capture);
  for (NodeId node = 0; node < body.size(); ++node) {
    const WorkTag& tag = *body.tags[node];
    out << fmt::format("  node_{} [label=\"{}\\nstream {}\"];\n", node, escaped(tag.name),
                       tag.stream.raw);
    for (const NodeId before : body.after[node]) {
      out << fmt::format("  node_{} -> node_{};\n", before, node);
    }
  }
  out << "}\n";
}

}  // namespace cistern::sim
