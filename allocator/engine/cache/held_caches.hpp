// The caches of some heaps, emptied or only counted, and kept still: what whoever looks at those
// heaps as a whole, or needs all of their memory, stands on.
#pragma once

#include <span>

#include "allocator/engine/heap.hpp"

namespace cistern {

/// What is done with them: what they counted is counted in their heaps and their stacks stay, or
/// all of it goes back.
enum class Caches : bool { kCounted, kEmptied };

/// Until it goes, the owners' fast ways are closed: an owner that comes by goes to the heap's lock,
/// and waits there. Pre: the caller holds the locks of all the heaps, and does so until it goes.
class HeldCaches {
 public:
  explicit HeldCaches(std::span<Heap* const> heaps, Caches what = Caches::kEmptied) noexcept
      : what_(what), heaps_(heaps) {
    hold(heaps);
  }
  explicit HeldCaches(Heap& heap) noexcept
      : only_(&heap), what_(Caches::kEmptied), heaps_(&only_, 1) {
    hold(heaps_);
  }
  ~HeldCaches();
  /// Holds those of more heaps too: `heaps` begins with those that are held, and stays where it is.
  void extend(std::span<Heap* const> heaps) noexcept;
  /// Whether any of them is another thread's.
  bool closedOthers() const { return others_; }
  /// Whether there was anything in them.
  bool hadAny() const { return any_; }
  HeldCaches(const HeldCaches&) = delete;
  HeldCaches& operator=(const HeldCaches&) = delete;

 private:
  void hold(std::span<Heap* const> heaps) noexcept;

  Heap* only_ = nullptr;
  const Caches what_;
  bool others_ = false;
  bool any_ = false;
  std::span<Heap* const> heaps_;
};

/// Until it is called with false, no thread takes from a cache of the heap: what would be served
/// from one goes the long way. Pre: the heap's lock is held.
void setCachesShut(Heap& heap, bool shut) noexcept;

/// The caches of a heap that rests (active_heaps.hpp): nothing is in them, nothing gets in, and all
/// that their owners do goes to the heap. False, and nothing is changed, when there is something.
/// Pre: the heap's lock is held, and the caches are held still.
bool restCaches(Heap& heap) noexcept;
/// It does so no more. Pre: the heap's lock is held.
void wakeCaches(Heap& heap) noexcept;
/// The heap is another stream's. Pre: its lock is held, and its caches are shut.
void followHeap(Heap& heap) noexcept;

}  // namespace cistern
