// A value of its own for each thread, and the hooks that run when a thread ends.
//
// Two things make it work in every order. First, a thread reads a bare pointer, which needs no
// construction and outlives everything else of the thread. Second, the thread library reports the
// end of a thread. It does so after the destructors of the thread's own thread_local objects, so
// that these may still use their slots. Code that uses a slot even later, in another library's
// end-of-thread hook, gets a fresh one. That slot goes in another round.
//
// The main thread's slots stay: when it ends, so does the process. (They go when it ends by itself,
// with pthread_exit.)
//
// A later loaded library that contains this code stays loaded from the first hook on: threads end
// after a dlclose too.
#pragma once

#include <memory>
#include <utility>

namespace cistern {

/// Runs `hook(what)` when the calling thread ends, last in, first out. Throws std::bad_alloc.
void atThreadExit(void (*hook)(void* what) noexcept, void* what);

/// The library that this code is in stays loaded from now on, also after its dlclose. Pre: no lock
/// is held: the loader has one of its own. Thread-safe.
void stayLoaded() noexcept;

/// The calling thread's T: made at the first mine(), destroyed when the thread ends. One T has one
/// slot: give two uses of the same class a type of their own each.
template <class T>
class ThreadSlot {
 public:
  static T& mine() {
    if (mine_ != nullptr) [[likely]]
      return *mine_;
    return make();
  }
  /// Null when the thread has none.
  static T* find() noexcept { return mine_; }

 private:
  static T& make() {
    auto made = std::make_unique<T>();
    atThreadExit(&end, nullptr);
    mine_ = made.release();
    return *mine_;
  }
  static void end(void*) noexcept { delete std::exchange(mine_, nullptr); }

  inline static constinit thread_local T* mine_ = nullptr;
};

}  // namespace cistern
