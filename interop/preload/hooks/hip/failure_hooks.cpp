// The result of hipGetLastError. HIP's runtime keeps the last failure of a thread. It does not know
// of a failed call that Cistern has served.
#include "interop/preload/hooks/hook_entry.hpp"

namespace cistern::preload::hip {
namespace {

hipError_t orOurs(hipError_t theirs) noexcept {
  return detail::last_failure != hipSuccess ? detail::last_failure : theirs;
}

// Both forget theirs.
template <class Function>
hipError_t take(Function FunctionTable::*function) noexcept {
  const Entry entry;
  const hipError_t found = orOurs(entry.pass(function));
  detail::last_failure = hipSuccess;
  return found;
}

}  // namespace
}  // namespace cistern::preload::hip

using namespace cistern::preload::hip;

CISTERN_HOOK hipError_t hipGetLastError() { return take(&Functions::hipGetLastError); }

CISTERN_HOOK hipError_t hipPeekAtLastError() {
  const Entry entry;
  return orOurs(entry.pass(&Functions::hipPeekAtLastError));
}

// The header may not declare it.
extern "C" hipError_t extGetLastError() __asm__("hipExtGetLastError");
CISTERN_HOOK hipError_t extGetLastError() { return take(&Functions::hipExtGetLastError); }
