#include "handles/workspaces.hpp"

#include <iterator>

#include "allocator/base/device_slots.hpp"
#include "allocator/base/process.hpp"

namespace cistern {

void clearWorkspaces(int device) {
  (void)ordinalIndex(device);
  handles::workspaces().releasePool(device, WorkspacePool{});
}

void clearWorkspaces(int device, Stream stream) {
  (void)ordinalIndex(device);
  handles::workspaces().releaseStream(device, stream);
}

std::vector<WorkspaceStats> workspaceStatistics() { return handles::workspaces().statistics(); }

namespace handles {

Workspaces& workspaces() {
  static Workspaces& only = []() -> Workspaces& {
    atFork([] { workspaces().mutex_.takeForFork(); },
           [] { workspaces().mutex_.releaseAfterFork(); });
    return *new Workspaces;
  }();
  return only;
}

Workspace Workspaces::find(const WorkspaceKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = table_.find(key);
  return found == table_.end() ? Workspace{} : found->second.workspace;
}

// The allocator is called without the lock: it may call the program, which may clear workspaces.
Workspace Workspaces::get(const WorkspaceKey& key, std::size_t (*bytes_on)(int device),
                          CachingAllocator& allocator) {
  if (const Workspace there = find(key); there.memory != nullptr) return there;
  const std::size_t bytes = bytes_on(key.device);
  if (bytes == 0) return {};
  const Workspace made{allocateWorkspace(allocator, bytes, key.stream), bytes};
  Workspace kept;
  try {
    const MutexLock lock(mutex_);
    kept = table_.emplace(key, Entry{made, &allocator}).first->second.workspace;
  } catch (...) {
    freeWorkspace(allocator, made.memory);
    throw;
  }
  // A callback of the program's may have asked for the same handle.
  if (kept.memory != made.memory) freeWorkspace(allocator, made.memory);
  return kept;
}

namespace {

// Moves nodes from one table to another, which needs no memory.
template <class From, class To, class Matches>
void moveNodes(From& from, To& to, Matches matches) noexcept {
  for (auto at = from.begin(); at != from.end();) {
    const auto next = std::next(at);
    if (matches(at->first)) to.insert(from.extract(at));
    at = next;
  }
}

}  // namespace

// They are unlinked under the lock, and freed outside of it.
template <class Matches>
void Workspaces::release(Matches matches) noexcept {
  PastTable gone;
  {
    const MutexLock lock(mutex_);
    moveNodes(table_, gone, matches);
    moveNodes(past_, gone, matches);
  }
  noteWorkspacesChanged();
  for (const auto& [key, entry] : gone) freeWorkspace(*entry.allocator, entry.workspace.memory);
}

void Workspaces::releasePool(int device, WorkspacePool pool) noexcept {
  release([&](const WorkspaceKey& key) { return key.device == device && key.pool == pool; });
}

void Workspaces::releaseStream(int device, Stream stream) noexcept {
  const auto of_stream = [&](const WorkspaceKey& key) {
    return key.device == device && key.stream == stream;
  };
  {
    const MutexLock lock(mutex_);
    moveNodes(table_, past_, [&](const WorkspaceKey& key) {
      return of_stream(key) && key.pool != WorkspacePool{};
    });
  }
  release([&](const WorkspaceKey& key) { return of_stream(key) && key.pool == WorkspacePool{}; });
}

void Workspaces::clear(int device) noexcept {
  release([&](const WorkspaceKey& key) { return key.device == device; });
}

std::vector<WorkspaceStats> Workspaces::statistics() const {
  std::map<std::pair<int, WorkspacePool>, WorkspaceStats> found;
  const auto add = [&found](const auto& table) {
    for (const auto& [key, entry] : table) {
      WorkspaceStats& stats = found[{key.device, key.pool}];
      stats.device = key.device;
      stats.pool = key.pool;
      ++stats.count;
      stats.bytes += entry.workspace.bytes;
    }
  };
  const MutexLock lock(mutex_);
  add(table_);
  add(past_);
  std::vector<WorkspaceStats> all;
  for (const auto& [place, stats] : found) all.push_back(stats);
  return all;
}

}  // namespace handles
}  // namespace cistern
