// The objects behind the handles.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "cistern/graph.hpp"
#include "cistern/pinned.hpp"
#include "cistern/pool.hpp"
#include "interop/c/use.hpp"

namespace cistern::capi {

/// An allocator with everything that it stands on; or a shared one, which others own.
///
/// Objects made from it are counted, so that it stays while any of them exists. A call that makes
/// such an object holds the allocator's handle, and counts the object under the lock. The call that
/// destroys the allocator looks at the count under the lock, and from then on no more objects are
/// made. So a handle ends only when it is sure to.
struct AllocatorObject {
  static constexpr Kind kKind = Kind::kAllocator;
  static constexpr bool kFrequent = true;

  AllocatorObject(std::unique_ptr<Device> on, const Options& options);
  AllocatorObject(CachingAllocator& shared_allocator, Pools& shared_pools,
                  PinnedAllocator& shared_pinned)
      : allocator(&shared_allocator), pools(&shared_pools), pinned(&shared_pinned) {}

  bool shared() const { return own == nullptr; }
  /// The handle is the allocator's: calls with it hit its caches.
  void setHandle(Word handle) noexcept;
  /// Returns when no hit uses the allocator, and none will. Pre: the handle is no longer valid.
  void awaitHits() noexcept;

  /// Counts one more of the pools, captures, holds or hooks; throws Failure when it is being
  /// destroyed.
  void count(int AllocatorObject::*children);
  void uncount(int AllocatorObject::*children) noexcept;

  CachingAllocator* allocator;
  Pools* pools;
  PinnedAllocator* pinned;
  // In the order in which one stands on the other.
  std::unique_ptr<Device> device;
  std::unique_ptr<CachingAllocator> own;
  std::unique_ptr<Pools> own_pools;
  std::unique_ptr<PinnedAllocator> own_pinned;

  Mutex mutex{LockRank::kCAllocator};
  int pools_made = 0, captures_made = 0, holds_made = 0, hooks_made = 0;  ///< under the lock
  bool ending = false;                                                    ///< the same
};

/// Counts the objects that are made from an allocator while it lives.
class Child {
 public:
  Child(AllocatorObject& of, int AllocatorObject::*children) : of_(of), children_(children) {
    of_.count(children_);
  }
  ~Child() { of_.uncount(children_); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  AllocatorObject& parent() const { return of_; }

 private:
  AllocatorObject& of_;
  int AllocatorObject::*const children_;
};

struct PoolObject {
  static constexpr Kind kKind = Kind::kPool;
  static constexpr bool kFrequent = false;

  /// A scope that was begun and not ended. That of a thread may have ended with it.
  struct Scope {
    std::uint64_t number;
    std::uint32_t thread;  ///< 0: it is that of a stream
    Stream stream;
  };

  PoolObject(AllocatorObject& of, const MemPoolOptions& options)
      : child(of, &AllocatorObject::pools_made), pool(*of.pools, options) {}

  const Child child;
  MemPool pool;
  Mutex mutex{LockRank::kCPool};
  std::vector<Scope> scopes;  ///< under the lock
  bool ending = false;        ///< the same
};

struct CaptureObject {
  static constexpr Kind kKind = Kind::kCapture;
  static constexpr bool kFrequent = false;

  explicit CaptureObject(AllocatorObject& of)
      : child(of, &AllocatorObject::captures_made), memory(*of.pools) {}

  const Child child;
  Mutex mutex{LockRank::kCCapture};
  GraphMemory memory;  ///< under the lock
};

struct HoldObject {
  static constexpr Kind kKind = Kind::kHold;
  static constexpr bool kFrequent = false;

  explicit HoldObject(AllocatorObject& of) : child(of, &AllocatorObject::holds_made) {}

  const Child child;
  std::shared_ptr<void> memory;
};

struct MemoryHookObject {
  static constexpr Kind kKind = Kind::kMemoryHook;
  static constexpr bool kFrequent = false;

  explicit MemoryHookObject(AllocatorObject& of) : child(of, &AllocatorObject::hooks_made) {}
  ~MemoryHookObject() { detach(); }
  MemoryHookObject(const MemoryHookObject&) = delete;
  MemoryHookObject& operator=(const MemoryHookObject&) = delete;

  void attach(const MemoryHook& hook) {
    id = child.parent().allocator->attachMemoryHook(hook);
    attached = true;
  }
  /// Waits for other threads that are in the hook. False if another thread does it, or has done it,
  /// which is not waited for: it may wait for the hook that calls this. Throws std::bad_alloc,
  /// changing nothing.
  bool detach() {
    if (!attached.exchange(false)) return false;
    try {
      child.parent().allocator->detach(id);
    } catch (...) {
      attached = true;
      throw;
    }
    return true;
  }

  const Child child;
  HookId id{};
  std::atomic<bool> attached{false};
};

inline Stream streamOf(void* stream) { return Stream(toAddress(stream)); }

}  // namespace cistern::capi
