// The objects of a class that are alive, by number: so that what a thread kept of one can be looked
// up when the thread ends, and an object that goes waits until such a thread has let go.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"

namespace cistern {

/// Numbers are from 1 and never used twice. Thread-safe. Outlives every thread, and is whole in a
/// child of fork.
template <class T>
class Registry {
 public:
  /// Throws std::bad_alloc.
  static std::uint64_t add(T& object) {
    Registry& all = instance();
    const MutexLock lock(all.mutex_);
    const std::uint64_t number = ++all.last_;
    all.objects_.emplace(number, &object);
    return number;
  }

  /// Holds the registry as it is: nothing comes or goes meanwhile.
  class Held {
   public:
    Held() : lock_(all_.mutex_) {}
    /// Null when it is gone.
    T* find(std::uint64_t number) const {
      all_.mutex_.assertHeld();
      const auto found = all_.objects_.find(number);
      return found == all_.objects_.end() ? nullptr : found->second;
    }
    void remove(std::uint64_t number) {
      all_.mutex_.assertHeld();
      all_.objects_.erase(number);
    }

   private:
    Registry& all_ = instance();
    const MutexLock lock_;
  };

 private:
  static Registry& instance() {
    static auto* const all = [] {
      auto made = std::make_unique<Registry>();
      atFork([] { instance().mutex_.takeForFork(); }, [] { instance().mutex_.releaseAfterFork(); });
      return made.release();
    }();
    return *all;
  }

  Mutex mutex_;
  std::unordered_map<std::uint64_t, T*> objects_ CISTERN_GUARDED_BY(mutex_);
  std::uint64_t last_ CISTERN_GUARDED_BY(mutex_) = 0;
};

}  // namespace cistern
