#include "allocator/base/process.hpp"

#include <cstdlib>
#include <new>
#include <string>

#include <pthread.h>

#include "cistern/error.hpp"

namespace cistern {
namespace {

std::atomic<bool> exiting{false};

}  // namespace

// Exit handlers run last in, first out. The first user registers this one, after the runtime
// library's own static set-up. So it runs before the tear-down of that set-up.
bool driverMayBeCalled() noexcept {
  static const int registered = std::atexit([] { exiting.store(true); });
  (void)registered;
  return !exiting.load(std::memory_order_relaxed);
}

std::uint64_t Birthplace::forksUpToHere() {
  static const bool counted = [] {
    if (pthread_atfork(nullptr, nullptr, [] { ++detail::forks; }) != 0) throw std::bad_alloc();
    return true;
  }();
  (void)counted;
  return detail::forks.load(std::memory_order_relaxed);
}

void Birthplace::refuse(const char* verb) {
  throw Error(std::string(verb) +
              ": what it is called on was made before a fork, and is the parent process': a child "
              "makes its own, or only exits");
}

void atFork(void (*take)(), void (*release)()) {
  if (pthread_atfork(take, release, release) != 0) throw std::bad_alloc();
}

void inChildOfFork(void (*restore)()) {
  if (pthread_atfork(nullptr, nullptr, restore) != 0) throw std::bad_alloc();
}

}  // namespace cistern
