#include "allocator/base/process.hpp"

#include <atomic>
#include <cstdlib>

namespace cistern {
namespace {

std::atomic<bool> exiting{false};

}  // namespace

// Exit handlers run last in, first out. This one is registered by the first user, which comes after
// the runtime library's own static set-up, so it runs before what that set up is torn down.
bool driverMayBeCalled() noexcept {
  static const int registered = std::atexit([] { exiting.store(true); });
  (void)registered;
  return !exiting.load(std::memory_order_relaxed);
}

}  // namespace cistern
