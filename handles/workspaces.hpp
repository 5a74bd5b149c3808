// The memory that libraries compute in: one workspace for each (handle, stream, pool), from the
// device's allocator.
//
// The stream is in the key because two streams' work may overlap. The block also belongs to the
// stream: freed, it is reused in stream order. The pool is in the key because a graph keeps the
// captured addresses. A workspace of the graph's own pool lives exactly as long as the pool has
// users, and an eager call in between never shares it.
//
// A thread keeps its handle's last binding beside the handle (BoundWorkspace). The epoch counts the
// times when workspaces went away. A binding of an older epoch is made again.
#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "cistern/types.hpp"
#include "handles/memory_source.hpp"

namespace cistern {

namespace handles {

struct WorkspaceKey {
  int device = 0;
  WorkspacePool pool;
  const void* handle = nullptr;
  Stream stream;
  friend bool operator<(const WorkspaceKey& a, const WorkspaceKey& b) {
    return std::tie(a.device, a.pool, a.handle, a.stream) <
           std::tie(b.device, b.pool, b.handle, b.stream);
  }
};

/// The binding that a handle's thread knows. The first epoch is 1, so a new one matches nothing.
struct BoundWorkspace {
  Stream stream;
  WorkspacePool pool;
  std::uint64_t epoch = 0;
  friend bool operator==(const BoundWorkspace&, const BoundWorkspace&) = default;
};

namespace detail {
inline constinit std::atomic<std::uint64_t> workspace_epoch{1};
}
inline std::uint64_t workspaceEpoch() noexcept {
  return detail::workspace_epoch.load(std::memory_order_acquire);
}
inline void noteWorkspacesChanged() noexcept { detail::workspace_epoch.fetch_add(1); }

/// All verbs are thread-safe. Only the thread that has a key's handle may call get with that key.
class Workspaces {
 public:
  /// The key's workspace. Makes one of bytes_on(device) bytes if the key has none yet; none for 0
  /// bytes. Throws OutOfMemory, and what bytes_on throws.
  Workspace get(const WorkspaceKey& key, std::size_t (*bytes_on)(int device),
                CachingAllocator& allocator);

  /// Frees the workspaces of a pool whose last user has let go: nothing will use them again.
  void releasePool(int device, WorkspacePool pool) noexcept;
  /// Frees the default pool's workspaces on one stream. Other pools' workspaces there belong to no
  /// key from now on, and are freed with their pool.
  void releaseStream(int device, Stream stream) noexcept;
  /// Frees all of a device.
  void clear(int device) noexcept;

  std::vector<WorkspaceStats> statistics() const;

 private:
  friend Workspaces& workspaces();
  struct Entry {
    Workspace workspace;
    CachingAllocator* allocator;
  };
  using Table = std::map<WorkspaceKey, Entry>;
  using PastTable = std::multimap<WorkspaceKey, Entry>;

  Workspace find(const WorkspaceKey& key) const;
  template <class Matches>
  void release(Matches matches) noexcept;

  mutable Mutex mutex_{LockRank::kWorkspaces};
  Table table_ CISTERN_GUARDED_BY(mutex_);
  /// Workspaces of streams that are gone: a graph of the pool may still compute in them.
  PastTable past_ CISTERN_GUARDED_BY(mutex_);
};

/// The process' only one; never destroyed.
Workspaces& workspaces();

}  // namespace handles
}  // namespace cistern
