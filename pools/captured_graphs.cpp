#include "pools/captured_graphs.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "allocator/base/process.hpp"
#include "allocator/base/steps.hpp"
#include "allocator/engine/engine.hpp"
#include "cistern/graph.hpp"
#include "pools/captured_graph.hpp"
#include "pools/pool_users.hpp"

namespace cistern {

CapturedGraphs::CapturedGraphs(Engine& engine)
    : retired(
          engine.device, engine.events, engine.streams,
          [&engine](const PendingFrees::Pending&) { --engine.hooks.untidy; }, LockRank::kRetired),
      untidy_(engine.hooks.untidy) {}

void CapturedGraphs::keepForGood() noexcept {
  keeps_for_good = true;
  untidy_ -= retired.waiting();
  retired.drop();
}

void CapturedGraphs::add(CapturedGraph& graph) noexcept {
  const MutexLock lock(mutex_);
  graph.launches_.place = graph.launches_.record.begin();
  graphs_.splice(graphs_.end(), graph.launches_.record);
}

void CapturedGraphs::retire(std::shared_ptr<CapturedGraph> graph) noexcept {
  Launches& of = graph->launches_;
  {
    const MutexLock lock(mutex_);
    graphs_.erase(of.place);
  }
  if (driverMayBeCalled()) keepUntil(std::move(of.replays), std::move(graph));
}

void CapturedGraphs::keepUntil(PendingFrees::Fence replays, std::shared_ptr<void> kept) noexcept {
  ++untidy_;
  retired.add({nullptr, false, false, std::move(kept)}, std::move(replays));
}

// ---- Launches ----------------------------------------------------------------------------------

// While a pool of its memory sleeps, its footprint is vacant in part.
void CapturedGraphs::refuseAsleep(const CapturedGraph& graph) const {
  if (asleep_.empty() || !graph.holdsAny(asleep_)) return;
  throw GraphError("replay: the graph's memory is asleep: wake its pools first");
}

void CapturedGraphs::beginLaunch(CapturedGraph& graph, Stream stream) {
  const MutexLock lock(mutex_);
  refuseAsleep(graph);
  graph.launches_.replays.add(stream);
  graph.launches_.asked = false;
  ++graph.launches_.announced;
}

void CapturedGraphs::requireBound(const CapturedGraph& graph) const {
  const MutexLock lock(mutex_);
  refuseAsleep(graph);
}

void CapturedGraphs::endLaunch(CapturedGraph& graph) noexcept {
  const MutexLock lock(mutex_);
  if (graph.launches_.announced > 0) --graph.launches_.announced;
}

// An event that is recorded while a launch is announced would say nothing of that launch.
bool CapturedGraphs::idle(CapturedGraph& graph) noexcept try {
  Launches& of = graph.launches_;
  {
    const MutexLock lock(mutex_);
    if (of.announced > 0) return false;
  }
  if (!of.asked) ask(of);
  (void)retired.poll();
  const MutexLock lock(mutex_);
  if (!of.queued.expired()) return false;
  of.replays.clear();
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void CapturedGraphs::ask(Launches& of) {
  const std::shared_ptr<void> until = std::make_shared<char>();
  keepUntil(PendingFrees::Fence(of.replays.streams()), until);
  of.queued = until;
  of.asked = true;
}

// ---- Sleep -------------------------------------------------------------------------------------

std::vector<Stream> CapturedGraphs::fallAsleep(const std::vector<MempoolId_t>& pools) {
  const MutexLock lock(mutex_);
  std::vector<Stream> streams;
  std::set<MempoolId_t> more(pools.begin(), pools.end());
  noteSteps(graphs_.size());
  for (const CapturedGraph* graph : graphs_) {
    if (!graph->holdsAny(more)) continue;
    if (graph->launches_.announced > 0) {
      const auto uses = [&](MempoolId_t id) { return graph->holds(id); };
      refusePool("sleep", *std::ranges::find_if(pools, uses),
                 "has a graph that is being launched: announce the end of each launch (launched)");
    }
    const std::vector<Stream> launchers = graph->launches_.replays.streams();
    streams.insert(streams.end(), launchers.begin(), launchers.end());
  }
  asleep_.merge(more);
  return streams;
}

void CapturedGraphs::addResultsTo(ResultsOfPools& of) const {
  const MutexLock lock(mutex_);
  noteSteps(graphs_.size());
  for (const CapturedGraph* graph : graphs_) graph->addResultsTo(of);
}

void CapturedGraphs::wake(const std::vector<MempoolId_t>& pools) noexcept {
  const MutexLock lock(mutex_);
  for (const MempoolId_t id : pools) asleep_.erase(id);
}

}  // namespace cistern
