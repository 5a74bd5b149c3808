#include "handles/handle_statistics.hpp"

#include <algorithm>

#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"

namespace cistern {
namespace {

struct Roll {
  Mutex mutex{LockRank::kHandleSources};
  std::vector<const HandleCountsSource*> sources CISTERN_GUARDED_BY(mutex);
};

// Never destroyed: pools may go later than any other static object.
Roll& roll() {
  static Roll& only = []() -> Roll& {
    atFork([] { roll().mutex.takeForFork(); }, [] { roll().mutex.releaseAfterFork(); });
    return *new Roll;
  }();
  return only;
}

}  // namespace

void HandleCountsSource::enlist() {
  Roll& all = roll();
  const MutexLock lock(all.mutex);
  all.sources.push_back(this);
}

void HandleCountsSource::delist() noexcept {
  Roll& all = roll();
  const MutexLock lock(all.mutex);
  std::erase(all.sources, this);
}

std::vector<HandleStats> handleStatistics() {
  std::vector<HandleStats> found;
  Roll& all = roll();
  const MutexLock lock(all.mutex);
  for (const HandleCountsSource* source : all.sources) source->appendTo(found);
  return found;
}

}  // namespace cistern
