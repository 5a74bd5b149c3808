#include "interop/preload/process/settings.hpp"

#include <cstdlib>

#include <pthread.h>
#include <unistd.h>

#include "interop/preload/record/ledger.hpp"

namespace cistern::preload {
namespace {

bool isThisProcess() noexcept {
  const char* const wanted = std::getenv(kRunProcess);
  return wanted == nullptr || std::atoll(wanted) == getpid();
}

void begin() noexcept {
  detail::serves_here = isThisProcess();
  if (!active()) leaveRecord();
  const char* const folder = std::getenv(kRunFolder);
  if (active() && folder != nullptr) beginRecord(folder, std::getenv(kRunTrace) != nullptr);
}

// Before main, and before any other thread.
[[gnu::constructor]] void start() noexcept {
  detail::ipc = std::getenv(kRunIpc) != nullptr;
  detail::strict = std::getenv(kRunStrict) != nullptr;
  begin();
  (void)pthread_atfork(nullptr, nullptr, begin);
}

[[gnu::destructor]] void end() noexcept { record().exited = 1; }

}  // namespace

}  // namespace cistern::preload
