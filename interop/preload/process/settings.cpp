#include "interop/preload/process/settings.hpp"

#include <cstdio>
#include <cstdlib>

#include <pthread.h>
#include <unistd.h>

#include "interop/preload/record/ledger.hpp"

namespace cistern::preload {
namespace {

// What the process was told when it started: the program may change its environment, or clear it,
// and fork.
long long process = 0;  // the one to serve; 0: any
char folder[4096] = "";
bool trace = false;

void begin() noexcept {
  detail::serves_here = process == 0 || process == getpid();
  if (!active()) leaveRecord();
  if (active() && *folder != '\0') beginRecord(folder, trace);
}

// Before main, and before any other thread. A program with more rights than its user is told
// nothing: its records would be made with those rights.
[[gnu::constructor]] void start() noexcept {
  if (const char* const wanted = secure_getenv(kRunProcess)) process = std::atoll(wanted);
  if (const char* const named = secure_getenv(kRunFolder))
    std::snprintf(folder, sizeof folder, "%s", named);
  trace = secure_getenv(kRunTrace) != nullptr;
  detail::ipc = secure_getenv(kRunIpc) != nullptr;
  detail::strict = secure_getenv(kRunStrict) != nullptr;
  begin();
  (void)pthread_atfork(nullptr, nullptr, begin);
}

[[gnu::destructor]] void end() noexcept { record().exited = 1; }

}  // namespace

}  // namespace cistern::preload
