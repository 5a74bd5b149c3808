#include "pools/captured_graph.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/process.hpp"
#include "allocator/device/per_thread_stream.hpp"
#include "allocator/engine/backing/imports.hpp"
#include "allocator/engine/exchange/exchange.hpp"
#include "cistern/graph.hpp"
#include "pools/pool_registry.hpp"

namespace cistern {

void requireState(PoolRegistry& pools, const std::shared_ptr<CapturedGraph>& graph,
                  GraphState allowed, const char* verb) {
  (void)pools.here(verb);
  const GraphState state = stateOf(graph);
  if (state == allowed) return;
  const char* const names[] = {"idle", "capturing", "captured"};
  throw GraphError(fmt::format("{}: the graph is {}", verb, names[std::size_t(state)]));
}

// ---- Its use, and its memory -------------------------------------------------------------------

CapturedGraph::CapturedGraph(PoolRegistry& pools, MempoolId_t pool) : pools_(pools), pool_(pool) {
  launches_.record.push_back(this);
  pools_.users.add("createOrIncrefPool", pool, {}, LetGoBy::kItself);
}

// A child of fork leaves its parent's memory alone.
CapturedGraph::~CapturedGraph() {
  if (!pools_.isHere()) return;
  if (!pools_.graphs.keeps_for_good) pools_.engine.letGo(footprint_);
  if (!driverMayBeCalled()) return;
  const MutexLock lock(pools_.users.mutex);
  pools_.users.drop(pool_, LetGoBy::kItself);
}

bool CapturedGraph::holdsAny(const std::set<MempoolId_t>& pools) const {
  return pools.contains(pool_) || std::ranges::any_of(footprint_.graphs, [&](const auto& part) {
           return static_cast<const CapturedGraph*>(part.get())->holdsAny(pools);
         });
}

void CapturedGraph::addResultsTo(ResultsOfPools& of) const {
  if (const auto it = of.find(pool_); it != of.end()) {
    std::vector<AddressRange>& ranges = it->second;
    ranges.insert(ranges.end(), footprint_.results.begin(), footprint_.results.end());
    if (footprint_.all_results) pools_.engine.addRangesOf(footprint_, ranges);
  }
  for (const auto& part : footprint_.graphs)
    static_cast<const CapturedGraph*>(part.get())->addResultsTo(of);
}

// ---- Capture -----------------------------------------------------------------------------------

std::shared_ptr<CapturedGraph> CapturedGraph::begin(PoolRegistry& pools, Stream origin,
                                                    MempoolId_t pool) {
  const MempoolId_t id = pool == MempoolId_t{} ? graphPoolHandle(false) : pool;
  pools.tidy();
  auto graph = std::make_shared<CapturedGraph>(pools, id);
  try {
    graph->record(origin);
  } catch (...) {
    unwind(graph);
    throw;
  }
  return graph;
}

void CapturedGraph::record(Stream origin) {
  const PoolUsers::Visit visiting = pools_.users.visit("captureBegin", pool_);
  reserved_before_ = reservedBytes(visiting.pool.heaps());
  pools_.engine.streams.registerStream(origin);  // while it is not captured
  const MutexLock lock(pools_.users.mutex);
  if (visiting.pool.asleep) refusePool("captureBegin", pool_, "is asleep: wake it first");
  auto capture = std::make_shared<LiveCapture>(pools_.engine, visiting.pool, origin);
  if (!pools_.scopes->begin(capture)) {
    refusePool("captureBegin", pool_,
               "is being captured into, or allocated to by a filter, already");
  }
  try {
    capture->prepare(origin);
  } catch (...) {
    pools_.scopes->end(*capture);
    throw;
  }
  pools_.followScopes();
  capture_ = std::move(capture);
}

void CapturedGraph::include(Stream stream) {
  requireOneStream(pools_.engine.device, stream);
  capture_->include(stream);
}

// The scope goes last: while it exists, the pool's next capture cannot begin. It catches no request
// any more.
void CapturedGraph::stopRecording() noexcept {
  const std::shared_ptr<LiveCapture> capture = std::move(capture_);
  footprint_ = capture->end();
  const MutexLock lock(pools_.users.mutex);
  pools_.scopes->end(*capture);
  pools_.followScopes();
}

void CapturedGraph::end() noexcept {
  stopRecording();
  pools_.graphs.add(*this);
  pools_.engine.imports->retry();
}

void CapturedGraph::unwind(std::shared_ptr<CapturedGraph>& graph) noexcept {
  PoolRegistry& pools = graph->pools_;
  if (graph->capturing()) {
    graph->stopRecording();
    pools.engine.letGo(graph->footprint_);
    graph->footprint_ = {};
    pools.engine.imports->retry();
  }
  try {
    if (driverMayBeCalled())
      trim(pools.engine, pools.users.visit("trim", graph->pool_).pool.heaps(),
           graph->reserved_before_);
  } catch (const std::bad_alloc&) {
  }
  pools.engine.memory_hooks.deliver();
  graph = nullptr;
  if (driverMayBeCalled()) pools.tidy();
}

// ---- Launches ----------------------------------------------------------------------------------

void CapturedGraph::launching(Stream stream) {
  requireOneStream(pools_.engine.device, stream);
  pools_.graphs.requireBound(*this);
  if (launchedInCapture(stream)) return;
  pools_.engine.streams.registerStream(stream);
  pools_.graphs.beginLaunch(*this, stream);
}

void CapturedGraph::launched() noexcept { pools_.graphs.endLaunch(*this); }
bool CapturedGraph::idle() noexcept { return pools_.graphs.idle(*this); }

// A graph launched on a stream that is being captured here becomes part of that capture.
bool CapturedGraph::launchedInCapture(Stream stream) {
  if (pools_.scopes->active() == 0) return false;
  const Route route = pools_.scopes->route(stream, Router::Asked::kCaptures);
  if (route.capture) route.capture->keep(shared_from_this());
  return route.capture != nullptr;
}

void CapturedGraph::reset(std::shared_ptr<CapturedGraph>& graph) noexcept {
  PoolRegistry& pools = graph->pools_;
  pools.graphs.retire(std::exchange(graph, nullptr));
  if (driverMayBeCalled()) pools.tidy();
}

}  // namespace cistern
