#include "interop/preload/process/preload_settings.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

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
char run_folder[4096] = "";
RecordSettings recorded;
char backend[32] = "";
RunHistory history = RunHistory::kNone;

// Another process may have the same number, in a PID namespace of its own.
bool isToBeServed() noexcept {
  if (process == 0) return true;
  return process == getpid() && sameNamespace(number_of, pidNamespace());
}

void begin() noexcept {
  detail::serves_here = isToBeServed();
  if (!active()) leaveRecord();
  if (active() && *run_folder != '\0') beginRecord(run_folder, recorded);
}

// The value of a variable, `text`: 0 where that is null, nothing where it is no number.
std::optional<std::uint64_t> numberIn(const char* name, const char* text) noexcept {
  if (text == nullptr) return 0;
  char* end = nullptr;
  const std::uint64_t number = std::strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && *end == '\0') return number;
  std::fprintf(stderr, "cistern: %s is no number, as `cistern run` sets it: nothing is served\n",
               name);
  return std::nullopt;
}

// Before main, and before any other thread. A program with more rights than its user gets no
// settings: its records would be made with those rights.
[[gnu::constructor]] void start() noexcept {
  const auto wanted = numberIn(kRunProcess, secure_getenv(kRunProcess));
  const auto inode = numberIn(kRunNamespace, secure_getenv(kRunNamespace));
  process = wanted && inode ? static_cast<long long>(*wanted) : -1;  // no process's number
  number_of = inode.value_or(0);
  if (const char* const named = secure_getenv(kRunFolder))
    std::snprintf(run_folder, sizeof run_folder, "%s", named);
  if (const char* const named = secure_getenv("CISTERN_BACKEND"))
    std::snprintf(backend, sizeof backend, "%s", named);
  recorded = {secure_getenv(kRunTrace) != nullptr, secure_getenv(kRunArguments) != nullptr};
  if (const char* const asked = secure_getenv(kRunHistory)) {
    history = std::strcmp(asked, "stacks") == 0 ? RunHistory::kStacks : RunHistory::kEvents;
  }
  detail::ipc = secure_getenv(kRunIpc) != nullptr;
  detail::strict = secure_getenv(kRunStrict) != nullptr;
  begin();
  (void)pthread_atfork(nullptr, nullptr, begin);
}

[[gnu::destructor]] void end() noexcept { record().exited = 1; }

}  // namespace

const char* backendAtStart() noexcept { return backend; }
const char* folderAtStart() noexcept { return run_folder; }
RunHistory historyAtStart() noexcept { return history; }

}  // namespace cistern::preload
