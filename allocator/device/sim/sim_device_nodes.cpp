// The simulated device's calls on the inside of captures and graphs. See sim_device.hpp.
#include <algorithm>
#include <fstream>

#include "allocator/device/sim/costs.hpp"
#include "allocator/device/sim/graph_dot.hpp"
#include "allocator/device/sim/refusal.hpp"
#include "allocator/device/sim/sim_device.hpp"

namespace cistern::sim {

Result<CaptureInfo> SimDevice::doCaptureFrontier(Stream stream, std::vector<GraphNode>& nodes) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kCaptureFrontier, cost::kCaptureFrontier); !in.ok()) {
    return in.error();
  }
  if (Status ok = checkStream(Call::kCaptureFrontier, stream); !ok.ok()) return ok.error();
  return captures_.frontierOf(stream, nodes);
}

Status SimDevice::doNodeDependencies(GraphNode node, std::vector<GraphNode>& dependencies) {
  MutexLock lock(mutex_);
  if (Status in = enter(Call::kNodeDependencies, cost::kNodeDependencies); !in.ok()) return in;
  const GraphBody* body = bodyWith(node);
  if (body == nullptr) {
    return refusal(Call::kNodeDependencies, Reason::kInvalidHandle,
                   "the node is of no active capture and of no graph that is alive");
  }
  body->handlesOf(body->after[nodeOf(node)], dependencies);
  return {};
}

// A broken capture has no nodes any more. A driver may have dropped them, and a program that still
// queries them would read missing memory.
const GraphBody* SimDevice::bodyWith(GraphNode node) {
  const GraphBody* body = captures_.bodyOf(captureOf(node));
  if (body == nullptr) {
    const auto it = std::find_if(graphs_.begin(), graphs_.end(), [&](const auto& graph) {
      return graph.second->capture == captureOf(node);
    });
    if (it != graphs_.end()) body = it->second.get();
  }
  return body != nullptr && nodeOf(node) < body->size() ? body : nullptr;
}

// The file is written without the lock: a graph does not change, and disks are slow.
Status SimDevice::doDumpGraph(DeviceGraph graph, const std::string& path) {
  std::shared_ptr<const GraphBody> body;
  {
    MutexLock lock(mutex_);
    if (Status in = enter(Call::kDumpGraph, cost::kDumpGraph); !in.ok()) return in;
    const auto it = graphs_.find(graph.raw);
    if (it == graphs_.end()) {
      return refusal(Call::kDumpGraph, Reason::kInvalidHandle, "the graph is not alive");
    }
    body = it->second;
  }
  std::ofstream file(path);
  writeDot(*body, file);
  if (file.flush()) return {};
  return refusal(Call::kDumpGraph, Reason::kInvalidValue, path + " cannot be written");
}

}  // namespace cistern::sim
