// How whoever needs several heaps at once holds their locks.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern {

/// Holds the locks of some heaps for a scope: in the order in which they were made, each once,
/// however often it is named. `several` is the lock for looking at several heaps, and is held; so
/// nobody waits for a second heap's lock while another does. The analysis does not follow it: who
/// uses a heap of them says Mutex::assertHeld.
class HeapLocks {
 public:
  HeapLocks(const Mutex& several, std::vector<Heap*>& heaps) : heaps_(heaps) {
    several.assertHeld();
    std::ranges::sort(heaps_, {}, &Heap::number);
    heaps_.erase(std::unique(heaps_.begin(), heaps_.end()), heaps_.end());
    std::ranges::for_each(heaps_, &Mutex::lock, &Heap::mutex);
  }
  ~HeapLocks() { std::ranges::for_each(heaps_, &Mutex::unlock, &Heap::mutex); }
  HeapLocks(const HeapLocks&) = delete;
  HeapLocks& operator=(const HeapLocks&) = delete;

 private:
  std::vector<Heap*>& heaps_;
};

}  // namespace cistern
