// Empties the caches of some heaps and keeps them empty. It is for a caller that needs all of those
// heaps' memory, or looks at the heaps as a whole.
#pragma once

#include <span>

#include "allocator/engine/cache/thread_cache.hpp"

namespace cistern {

/// While it lives, the owners' biased locks are revoked: an owner that comes goes to the heap's
/// lock, and waits there. So no owner changes what its cache keeps. Pre: the caller holds the locks
/// of all the heaps, and does so until it goes.
class StillCaches {
 public:
  explicit StillCaches(std::span<Heap* const> heaps) noexcept : heaps_(heaps) { revoke(); }
  explicit StillCaches(Heap& heap) noexcept : only_(&heap), heaps_(&only_, 1) { revoke(); }
  ~StillCaches() {
    forEachOther([](BiasedLock& biased_lock) { biased_lock.restore(); });
  }
  StillCaches(const StillCaches&) = delete;
  StillCaches& operator=(const StillCaches&) = delete;

 protected:
  template <class Visit>
  void forEachCache(Visit visit) const {
    for (Heap* heap : heaps_) {
      heap->mutex().assertHeld();
      for (ThreadCache* cache : heap->caches()) visit(*cache);
    }
  }

 private:
  // The calling thread is not in its own caches now. Caches that nobody owns are empty.
  template <class Visit>
  void forEachOther(Visit visit) const {
    forEachCache([&](ThreadCache& cache) {
      if (cache.isOpen() && !cache.isMine()) visit(cache.biasedLock());
    });
  }
  void revoke() noexcept {
    BiasedLock::revokeAll([this](auto visit) { forEachOther(visit); });
  }

  Heap* only_ = nullptr;
  std::span<Heap* const> heaps_;
};

/// The caches are still, and empty.
class HeldCaches : public StillCaches {
 public:
  using StillCaches::StillCaches;
  /// Whether there was anything in them.
  bool hadAny() const { return any_; }

 private:
  bool flush() const noexcept {
    bool any = false;
    forEachCache([&](ThreadCache& cache) {
      any |= cache.keepsAny();
      cache.flush();
    });
    return any;
  }

  const bool any_ = flush();
};

}  // namespace cistern
