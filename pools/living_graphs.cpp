#include "pools/living_graphs.hpp"

#include <algorithm>

#include "allocator/base/steps.hpp"
#include "cistern/graph.hpp"
#include "pools/pool_users.hpp"

namespace cistern {

LivingGraphs::Place LivingGraphs::add(std::list<LivingGraph>& one) noexcept {
  const MutexLock lock(mutex_);
  const Place place = one.begin();
  graphs_.splice(graphs_.end(), one);
  return place;
}

void LivingGraphs::remove(Place graph) noexcept {
  const MutexLock lock(mutex_);
  graphs_.erase(graph);
}

// ---- Launches ----------------------------------------------------------------------------------

// While a pool of its memory sleeps, its footprint is vacant in part.
void LivingGraphs::refuseAsleep(const LivingGraph& graph) const {
  if (asleep_.empty() || !graph.memory->holdsAny(asleep_)) return;
  throw GraphError("replay: the graph's memory is asleep: wake its pools first");
}

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
  std::set<MempoolId_t> more(pools.begin(), pools.end());
  noteSteps(graphs_.size());
  for (const LivingGraph& graph : graphs_) {
    if (!graph.memory->holdsAny(more)) continue;
    if (graph.launches > 0) {
      const auto uses = [&](MempoolId_t id) { return graph.memory->holds(id); };
      refusePool("sleep", *std::ranges::find_if(pools, uses),
                 "has a graph that is being launched: announce the end of each launch (launched)");
    }
    graph.release->addStreamsTo(streams);
  }
  asleep_.merge(more);
  return streams;
}

void LivingGraphs::addResultsTo(ResultsOfPools& of) const {
  const MutexLock lock(mutex_);
  noteSteps(graphs_.size());
  for (const LivingGraph& graph : graphs_) graph.memory->addResultsTo(of);
}

void LivingGraphs::wake(const std::vector<MempoolId_t>& pools) noexcept {
  const MutexLock lock(mutex_);
  for (const MempoolId_t id : pools) asleep_.erase(id);
}

}  // namespace cistern
