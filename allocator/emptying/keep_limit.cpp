#include "allocator/emptying/keep_limit.hpp"

#include <chrono>
#include <new>

#include "allocator/base/process.hpp"
#include "allocator/device/background_account.hpp"
#include "cistern/device.hpp"

namespace cistern {

KeepLimit::KeepLimit(Engine& engine, std::uint64_t milliseconds)
    : engine_(engine), milliseconds_(milliseconds), thread_([this] { run(); }) {}

KeepLimit::~KeepLimit() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_one();
  }
  thread_.join();
}

// If the host is short of memory, the next time gives it back.
void KeepLimit::run() {
  UnusedSince last;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::milliseconds(milliseconds_),
                            [this] { return stopping_; })) {
    lock.unlock();
    if (driverMayBeCalled()) {
      const DeliverAtEnd deliver(engine_.memory_hooks);
      const BackgroundAccount account;
      const RelaxedCaptureMode relaxed(engine_.device);
      try {
        giveBackUnused(engine_, last);
      } catch (const std::bad_alloc&) {
      }
    }
    lock.lock();
  }
}

}  // namespace cistern
