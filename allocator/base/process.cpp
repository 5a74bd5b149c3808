#include "allocator/base/process.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#include <pthread.h>

namespace cistern {
namespace {

std::atomic<bool> exiting{false};
std::atomic<std::uint64_t> forks{0};  ///< between the first process that counted and this one

}  // namespace

// Exit handlers run last in, first out. This one is registered by the first user, which comes after
// the runtime library's own static set-up, so it runs before what that set up is torn down.
bool driverMayBeCalled() noexcept {
  static const int registered = std::atexit([] { exiting.store(true); });
  (void)registered;
  return !exiting.load(std::memory_order_relaxed);
}

std::uint64_t Birthplace::forksUpToHere() {
  static const bool counted = [] {
    if (pthread_atfork(nullptr, nullptr, [] { ++forks; }) != 0) throw std::bad_alloc();
    return true;
  }();
  (void)counted;
  return forks.load(std::memory_order_relaxed);
}

bool Birthplace::isHere() const noexcept { return forks_ == forks.load(std::memory_order_relaxed); }

void atFork(void (*take)(), void (*release)()) {
  if (pthread_atfork(take, release, release) != 0) throw std::bad_alloc();
}

}  // namespace cistern
