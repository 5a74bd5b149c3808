// Whether the process is on its way out, and whether it is the one that made an object.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace cistern {

/// False once the process has begun to exit. The driver may then be gone already, and memory that
/// would go back to it is leaked on purpose. Thread-safe. The first call must come before main
/// returns; an allocator's constructor makes it.
bool driverMayBeCalled() noexcept;

namespace detail {
/// Between the first process that counted and this one.
inline constinit std::atomic<std::uint64_t> forks{0};
}  // namespace detail

/// The process in which an object was made. A child of fork has a copy of the object, but not of
/// the threads that used it. They may have been in the middle of a change, with locks that nobody
/// will release. So there, a destructor that would take locks or free memory leaves everything
/// unchanged. Fresh members, which hold nothing, are destroyed instead.
class Birthplace {
 public:
  Birthplace() : forks_(forksUpToHere()) {}
  /// False in a child that was forked since.
  bool isHere() const noexcept { return forks_ == detail::forks.load(std::memory_order_relaxed); }
  /// Throws Error in such a child. For verbs, before they take a lock.
  void requireHere(const char* verb) const {
    if (!isHere()) [[unlikely]]
      refuse(verb);
  }

 private:
  static std::uint64_t forksUpToHere();
  [[noreturn, gnu::cold]] static void refuse(const char* verb);

  std::uint64_t forks_;
};

/// Keeps a process-wide object that children use too whole while the process forks. `take` takes
/// its locks; `release` releases them in both processes. Throws std::bad_alloc.
void atFork(void (*take)(), void (*release)());
/// The one object of its kind in the process. It is made by the first call and never destroyed,
/// because threads may use it to the very end. Its `mutex` is held while the process forks, so that
/// a child has it whole. Throws std::bad_alloc.
template <class Kind>
Kind& processWide() {
  static Kind* const one = [] {
    auto made = std::make_unique<Kind>();
    atFork([] { processWide<Kind>().mutex.takeForFork(); },
           [] { processWide<Kind>().mutex.releaseAfterFork(); });
    return made.release();
  }();
  return *one;
}
/// Runs `restore` in each child of fork, which has no other thread. For a lock that may be held for
/// long, or while the thread that holds it forks. Throws std::bad_alloc.
void inChildOfFork(void (*restore)());

}  // namespace cistern
