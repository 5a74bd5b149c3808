#include "handles/workspaces.hpp"

#include <iterator>

#include "allocator/base/device_slots.hpp"

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
  static Workspaces& only = *new Workspaces;
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
  try {
    const MutexLock lock(mutex_);
    table_.emplace(key, Entry{made, &allocator});
  } catch (...) {
    freeWorkspace(allocator, made.memory);
    throw;
  }
  return made;
}

// Their nodes are unlinked under the lock, which needs no memory, and freed outside of it.
template <class Matches>
void Workspaces::release(Matches matches) noexcept {
  Table gone;
  {
    const MutexLock lock(mutex_);
    for (auto at = table_.begin(); at != table_.end();) {
      const auto next = std::next(at);
      if (matches(at->first)) gone.insert(table_.extract(at));
      at = next;
    }
  }
  noteWorkspacesChanged();
  for (const auto& [key, entry] : gone) freeWorkspace(*entry.allocator, entry.workspace.memory);
}

void Workspaces::releasePool(int device, WorkspacePool pool) noexcept {
  release([&](const WorkspaceKey& key) { return key.device == device && key.pool == pool; });
}

void Workspaces::releaseStream(int device, Stream stream) noexcept {
  release([&](const WorkspaceKey& key) {
    return key.device == device && key.stream == stream && key.pool == WorkspacePool{};
  });
}

void Workspaces::clear(int device) noexcept {
  release([&](const WorkspaceKey& key) { return key.device == device; });
}

// The key's order puts the entries of one device and pool side by side.
std::vector<WorkspaceStats> Workspaces::statistics() const {
  std::vector<WorkspaceStats> found;
  const MutexLock lock(mutex_);
  for (const auto& [key, entry] : table_) {
    if (found.empty() || found.back().device != key.device || found.back().pool != key.pool) {
      found.push_back({key.device, key.pool, 0, 0});
    }
    ++found.back().count;
    found.back().bytes += entry.workspace.bytes;
  }
  return found;
}

}  // namespace handles
}  // namespace cistern
