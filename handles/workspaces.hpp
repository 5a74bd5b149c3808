// The memory that libraries compute in: one workspace for each (handle, stream, pool), from the
// device's allocator.
//
// The stream is in the key because two streams' work may overlap, and because the block belongs to
// it: freed, it is reused in stream order. The pool is in the key because a graph keeps the
// addresses that were captured: a workspace of the graph's own pool lives exactly as long as the
// pool has users, and an eager call in between never shares it.
//
// A thread keeps beside its handle what was bound to it last (BoundWorkspace). The epoch counts the
// moments at which workspaces went away; a binding of an older epoch is made again.
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

/// What a handle's thread knows to be bound to it. The first epoch is 1: a new one matches nothing.
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

/// All verbs are thread-safe, but for one key only one thread may ask: the one that has the handle.
class Workspaces {
 public:
  /// The key's workspace. Where there is none yet it is made, of bytes_on(device) bytes; of 0 bytes
  /// there is none. Throws OutOfMemory, and what bytes_on throws.
  Workspace get(const WorkspaceKey& key, std::size_t (*bytes_on)(int device),
                CachingAllocator& allocator);

  /// Frees those of a pool whose last user has let go: nothing will use them again.
  void releasePool(int device, WorkspacePool pool) noexcept;
  /// Frees those of the default pool on one stream. Those of other pools are nobody's from now on,
  /// and freed with their pool.
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

  mutable Mutex mutex_;
  Table table_ CISTERN_GUARDED_BY(mutex_);
  /// Of streams that are gone: a graph of the pool may still compute in them.
  PastTable past_ CISTERN_GUARDED_BY(mutex_);
};

/// The process' only one; never destroyed.
Workspaces& workspaces();

}  // namespace handles
}  // namespace cistern
