#include "interop/preload/served/settings.hpp"

#include <cstdlib>

#include <pthread.h>
#include <unistd.h>

#include "interop/preload/record/ledger.hpp"
#include "interop/preload/served/contexts.hpp"

namespace cistern::preload {
namespace {

bool isThisProcess() noexcept {
  const char* const wanted = std::getenv(kRunProcess);
  return wanted == nullptr || std::atoll(wanted) == getpid();
}

void begin() noexcept {
  detail::serves_here = isThisProcess();
  const char* const folder = std::getenv(kRunFolder);
  if (active() && folder != nullptr) beginRecord(folder, std::getenv(kRunTrace) != nullptr);
}

// A child that has contexts of its parent can do nothing with them; one that has none is a process
// like any other.
void inChild() noexcept {
  if (contexts().any()) contexts().leaveToParent();
  begin();
}

// Before main, and before any other thread.
[[gnu::constructor]] void start() noexcept {
  detail::ipc = std::getenv(kRunIpc) != nullptr;
  detail::strict = std::getenv(kRunStrict) != nullptr;
  begin();
  (void)pthread_atfork(nullptr, nullptr, inChild);
}

[[gnu::destructor]] void end() noexcept { record().exited = 1; }

}  // namespace

}  // namespace cistern::preload
