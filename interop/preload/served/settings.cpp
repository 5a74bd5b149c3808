#include "interop/preload/served/settings.hpp"

#include <atomic>
#include <cstdlib>

#include <pthread.h>
#include <unistd.h>

#include "interop/preload/record/ledger.hpp"
#include "interop/preload/served/contexts.hpp"

namespace cistern::preload {
namespace {

std::atomic<bool> serves_here{false};
std::atomic<bool> ipc{false};
std::atomic<bool> strict{false};

bool isThisProcess() noexcept {
  const char* const wanted = std::getenv(kRunProcess);
  return wanted == nullptr || std::atoll(wanted) == getpid();
}

void begin() noexcept {
  serves_here = isThisProcess();
  const char* const folder = std::getenv(kRunFolder);
  if (serves_here && folder != nullptr) beginRecord(folder, std::getenv(kRunTrace) != nullptr);
}

// A child that has contexts of its parent can do nothing with them; one that has none is a process
// like any other.
void inChild() noexcept {
  if (contexts().any()) contexts().leaveToParent();
  begin();
}

// Before main, and before any other thread.
[[gnu::constructor]] void start() noexcept {
  ipc = std::getenv(kRunIpc) != nullptr;
  strict = std::getenv(kRunStrict) != nullptr;
  begin();
  (void)pthread_atfork(nullptr, nullptr, inChild);
}

[[gnu::destructor]] void end() noexcept { record().exited = 1; }

}  // namespace

bool active() noexcept { return serves_here.load(std::memory_order_relaxed); }
bool passesForIpc() noexcept { return ipc.load(std::memory_order_relaxed); }
bool asksForCompletion() noexcept { return strict.load(std::memory_order_relaxed); }

}  // namespace cistern::preload
