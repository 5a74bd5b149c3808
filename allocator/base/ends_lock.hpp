// The lock under which threads end, and under which the objects go that threads keep state of. So a
// thread that ends finds out which objects still exist. An object that goes waits until such a
// thread has left.
#pragma once

#include <memory>

#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"

namespace cistern {

/// Outlives every thread, and is whole in a child of fork. Made at the first call, which may throw
/// std::bad_alloc.
inline Mutex& endsMutex() {
  static Mutex* const mutex = [] {
    auto made = std::make_unique<Mutex>(LockRank::kEnds);
    atFork([] { endsMutex().takeForFork(); }, [] { endsMutex().releaseAfterFork(); });
    return made.release();
  }();
  return *mutex;
}

}  // namespace cistern
