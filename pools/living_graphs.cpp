#include "pools/living_graphs.hpp"

#include <algorithm>

#include "cistern/graph.hpp"
#include "pools/captured.hpp"
#include "pools/pool_users.hpp"

namespace cistern {

LivingGraphs::Place LivingGraphs::add(std::list<LivingGraph>& one) noexcept {
  const MutexLock lock(mutex_);
  const Place place = one.begin();
  for (const MempoolId_t id : asleep_) place->asleep += place->memory->holds(id) ? 1 : 0;
  graphs_.splice(graphs_.end(), one);
  return place;
}

void LivingGraphs::remove(Place graph) noexcept {
  const MutexLock lock(mutex_);
  graphs_.erase(graph);
}

// ---- Launches ----------------------------------------------------------------------------------

namespace {

void refuseAsleep(const LivingGraph& graph) {
  if (graph.asleep == 0) return;
  throw GraphError("replay: the graph's memory is asleep: wake its pools first");
}

}  // namespace

void LivingGraphs::beginLaunch(Place graph, Stream stream) {
  const MutexLock lock(mutex_);
  refuseAsleep(*graph);
  graph->release->addStream(stream);
  ++graph->launches;
}

void LivingGraphs::requireBound(Place graph) const {
  const MutexLock lock(mutex_);
  refuseAsleep(*graph);
}

void LivingGraphs::endLaunch(Place graph) noexcept {
  const MutexLock lock(mutex_);
  if (graph->launches > 0) --graph->launches;
}

// An event that is recorded while a launch is announced would say nothing of that launch.
bool LivingGraphs::idle(Place graph) noexcept {
  const MutexLock lock(mutex_);
  return graph->launches == 0 && graph->release->complete();
}

// ---- Sleep -------------------------------------------------------------------------------------

std::vector<Stream> LivingGraphs::fallAsleep(const std::vector<MempoolId_t>& pools) {
  const MutexLock lock(mutex_);
  std::vector<Stream> streams;
  for (const LivingGraph& graph : graphs_) {
    const auto uses = [&](MempoolId_t id) { return graph.memory->holds(id); };
    const auto pool = std::ranges::find_if(pools, uses);
    if (pool == pools.end()) continue;
    if (graph.launches > 0) {
      refusePool("sleep", *pool,
                 "has a graph that is being launched: announce the end of each launch (launched)");
    }
    graph.release->addStreamsTo(streams);
  }
  asleep_.insert(asleep_.end(), pools.begin(), pools.end());
  for (LivingGraph& graph : graphs_) {
    for (const MempoolId_t id : pools) graph.asleep += graph.memory->holds(id) ? 1 : 0;
  }
  return streams;
}

std::vector<AddressRange> LivingGraphs::resultsIn(MempoolId_t pool) const {
  const MutexLock lock(mutex_);
  std::vector<AddressRange> ranges;
  for (const LivingGraph& graph : graphs_) graph.memory->addResultsOf(pool, ranges);
  return ranges;
}

void LivingGraphs::wake(const std::vector<MempoolId_t>& pools) noexcept {
  const MutexLock lock(mutex_);
  for (const MempoolId_t id : pools) std::erase(asleep_, id);
  for (LivingGraph& graph : graphs_) {
    for (const MempoolId_t id : pools) graph.asleep -= graph.memory->holds(id) ? 1 : 0;
  }
}

}  // namespace cistern
