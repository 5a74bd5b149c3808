// Empties the caches of some heaps and keeps them empty. It is for a caller that needs all of those
// heaps' memory, or looks at the heaps as a whole.
#pragma once

#include <span>

#include "allocator/engine/cache/thread_cache.hpp"

namespace cistern {

/// Empties one cache. Pre: the caller holds the lock of its heap.
inline void flushHeld(ThreadCache& cache) noexcept {
  const bool of_other = cache.isOpen() && !cache.isMine();
  if (of_other) BiasedLock::revokeAll([&](auto visit) { visit(cache.biasedLock()); });
  cache.flush();
  if (of_other) cache.biasedLock().restore();
}

/// While it lives, no owner changes what its cache of the heap keeps. Pre: the caller holds the
/// heap's lock, and does so until it goes.
class StillCaches {
 public:
  explicit StillCaches(Heap& heap) noexcept : heap_(heap) {
    BiasedLock::revokeAll([this](auto visit) { forEachOther(visit); });
  }
  ~StillCaches() {
    forEachOther([](BiasedLock& biased_lock) { biased_lock.restore(); });
  }
  StillCaches(const StillCaches&) = delete;
  StillCaches& operator=(const StillCaches&) = delete;

 private:
  template <class Visit>
  void forEachOther(Visit visit) const {
    heap_.mutex().assertHeld();
    for (ThreadCache* cache : heap_.caches()) {
      if (cache->isOpen() && !cache->isMine()) visit(cache->biasedLock());
    }
  }

  Heap& heap_;
};

/// While it lives, the owners' biased locks are revoked: an owner that comes goes to the heap's
/// lock, and waits there. Pre: the caller holds the locks of all the heaps, and does so until it
/// goes.
class HeldCaches {
 public:
  explicit HeldCaches(std::span<Heap* const> heaps) noexcept : heaps_(heaps) { hold(); }
  explicit HeldCaches(Heap& heap) noexcept : only_(&heap), heaps_(&only_, 1) { hold(); }
  ~HeldCaches() {
    forEachOther([](BiasedLock& biased_lock) { biased_lock.restore(); });
  }
  /// Whether there was anything in them.
  bool hadAny() const { return any_; }
  HeldCaches(const HeldCaches&) = delete;
  HeldCaches& operator=(const HeldCaches&) = delete;

 private:
  template <class Visit>
  void forEachCache(Visit visit) const {
    for (Heap* heap : heaps_) {
      heap->mutex().assertHeld();
      for (ThreadCache* cache : heap->caches()) visit(*cache);
    }
  }
  // The calling thread is not in its own caches now. Caches that nobody owns are empty.
  template <class Visit>
  void forEachOther(Visit visit) const {
    forEachCache([&](ThreadCache& cache) {
      if (cache.isOpen() && !cache.isMine()) visit(cache.biasedLock());
    });
  }
  void hold() noexcept {
    BiasedLock::revokeAll([this](auto visit) { forEachOther(visit); });
    forEachCache([this](ThreadCache& cache) {
      any_ |= cache.keepsAny();
      cache.flush();
    });
  }

  Heap* only_ = nullptr;
  bool any_ = false;
  std::span<Heap* const> heaps_;
};

}  // namespace cistern
