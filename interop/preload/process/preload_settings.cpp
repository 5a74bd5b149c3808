#include "interop/preload/process/preload_settings.hpp"

#include <cstdio>
#include <cstdlib>

#include <pthread.h>
#include <unistd.h>

#include "interop/preload/process/identity.hpp"
#include "interop/preload/record/ledger.hpp"

namespace cistern::preload {
namespace {

// The settings of the process when it started: the program may change its environment, or clear it,
// and fork.
long long process = 0;        // the one to serve; 0: any
std::uint64_t number_of = 0;  // the PID namespace that it has this number in
char folder[4096] = "";
RecordSettings recorded;

// Another process may have the same number, in a PID namespace of its own.
bool isToBeServed() noexcept {
  if (process == 0) return true;
  return process == getpid() && sameNamespace(number_of, pidNamespace());
}

void begin() noexcept {
  detail::serves_here = isToBeServed();
  if (!active()) leaveRecord();
  if (active() && *folder != '\0') beginRecord(folder, recorded);
}

// Before main, and before any other thread. A program with more rights than its user gets no
// settings: its records would be made with those rights.
[[gnu::constructor]] void start() noexcept {
  if (const char* const wanted = secure_getenv(kRunProcess)) process = std::atoll(wanted);
  if (const char* const inode = secure_getenv(kRunNamespace))
    number_of = std::strtoull(inode, nullptr, 10);
  if (const char* const named = secure_getenv(kRunFolder))
    std::snprintf(folder, sizeof folder, "%s", named);
  recorded = {secure_getenv(kRunTrace) != nullptr, secure_getenv(kRunArguments) != nullptr};
  detail::ipc = secure_getenv(kRunIpc) != nullptr;
  detail::strict = secure_getenv(kRunStrict) != nullptr;
  begin();
  (void)pthread_atfork(nullptr, nullptr, begin);
}

[[gnu::destructor]] void end() noexcept { record().exited = 1; }

}  // namespace

}  // namespace cistern::preload
