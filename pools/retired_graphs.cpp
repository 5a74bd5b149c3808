#include "pools/retired_graphs.hpp"

#include <algorithm>

#include "pools/captured.hpp"

namespace cistern {

void RetiredGraphs::add(std::list<DeferredRelease>& graphs) noexcept {
  for (DeferredRelease& graph : graphs) (void)graph.complete();
  putBack(graphs);
}

void RetiredGraphs::putBack(std::list<DeferredRelease>& graphs) noexcept {
  const MutexLock lock(mutex_);
  graphs_.splice(graphs_.end(), graphs);
  count_ = graphs_.size();
}

// Under the lock this neither waits nor lets go.
bool RetiredGraphs::letGo(std::size_t looks, bool wait) noexcept {
  std::list<DeferredRelease> complete, waited_for;
  {
    const MutexLock lock(mutex_);
    complete = takeComplete(looks);
    if (complete.empty() && wait) waited_for.swap(graphs_);
    count_ = graphs_.size();
  }
  for (auto it = waited_for.begin(); it != waited_for.end();) {
    const auto graph = it++;
    if (graph->wait()) complete.splice(complete.end(), waited_for, graph);
  }
  putBack(waited_for);
  return !complete.empty();
}

// In turn: with many graphs reset while the device is busy, each miss would query all.
std::list<DeferredRelease> RetiredGraphs::takeComplete(std::size_t looks) noexcept {
  std::list<DeferredRelease> complete;
  for (looks = std::min(looks, graphs_.size()); looks > 0; --looks) {
    const auto graph = graphs_.begin();
    std::list<DeferredRelease>& to = graph->complete() ? complete : graphs_;
    to.splice(to.end(), graphs_, graph);
  }
  return complete;
}

void RetiredGraphs::waitForUnknown(std::optional<MempoolId_t> pool) noexcept {
  std::list<DeferredRelease> unknown;
  {
    const MutexLock lock(mutex_);
    for (auto it = graphs_.begin(); it != graphs_.end();) {
      const auto graph = it++;
      if (graph->unknown() && (!pool || graph->held().holds(*pool)))
        unknown.splice(unknown.end(), graphs_, graph);
    }
  }
  for (DeferredRelease& graph : unknown) graph.waitForUnknown();
  putBack(unknown);
}

void RetiredGraphs::keepForGood() noexcept {
  std::list<DeferredRelease> unfinished;
  {
    const MutexLock lock(mutex_);
    unfinished.swap(graphs_);
    count_ = 0;
  }
  for (DeferredRelease& graph : unfinished) graph.held().keepForGood();
}

}  // namespace cistern
