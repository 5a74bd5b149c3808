// The ways to find HIP's functions without being linked to them: dlsym (process/lookup.cpp),
// hipGetProcAddress and hipGetDriverEntryPoint.
//
// The C library and HIP answer the lookup. Only their answer is examined: if it is a function of
// HIP's that has a hook, the answer becomes the hook. A function that is not known at all may
// submit work. The answer becomes a stub that notes the work and jumps on to the function.
#include <string>
#include <unordered_map>

#include "interop/preload/hooks/hook_entry.hpp"
#include "interop/preload/hooks/rows.hpp"
#include "interop/preload/process/lookup.hpp"

using namespace cistern::preload;
using namespace cistern::preload::hip;

// The hooks by their symbols, which the header may not declare.
#define CISTERN_DECLARE(symbol) extern "C" char cistern_hook_##symbol __asm__(#symbol);
CISTERN_HOOKED_FUNCTIONS(CISTERN_DECLARE)
#undef CISTERN_DECLARE

namespace {

using HookTable = std::unordered_map<std::string_view, void*>;

const HookTable& hookTable() {
  static const HookTable& made = *[] {
    auto* const table = new HookTable;
#define CISTERN_ADD(symbol) table->emplace(#symbol, &cistern_hook_##symbol);
    CISTERN_HOOKED_FUNCTIONS(CISTERN_ADD)
#undef CISTERN_ADD
    for (const Row& row : submittingRows()) table->emplace(row.symbol, row.hook);
    return table;
  }();
  return made;
}

// HIP's functions are called hipX; other libraries' are hipblasX, hiprtcX and so on.
bool isHipName(const char* name) noexcept {
  return name[0] == 'h' && name[1] == 'i' && name[2] == 'p' && name[3] >= 'A' && name[3] <= 'Z';
}

// The hook for HIP's function of that name. Without a hook, it is the function itself if that is
// known to submit nothing. Else it is a stub that notes its work and jumps on to it.
void* hookFor(void* function, const std::string& name) {
  const auto found = hookTable().find(name);
  if (found != hookTable().end()) return found->second;
  if (!isHipName(name.c_str()) || isHarmless(name)) return function;
  noteUnknown(name.c_str());
  return unknownWork(function);
}

// The same for what HIP has answered to the name, in whichever spelling.
template <class Function, class... Arguments>
hipError_t lookUp(Function FunctionTable::*function, const char* name, void** found,
                  Arguments... arguments) {
  const Entry entry;
  const hipError_t result = entry.pass(function, name, found, arguments...);
  if (result != hipSuccess || found == nullptr || *found == nullptr || !entry.serves())
    return result;
  for (const char* const spelling : {"", "_spt"}) {
    const std::string symbol = std::string(name) + spelling;
    if (*found != realDlsym(driverLibrary(), symbol.c_str())) continue;
    *found = hookFor(*found, symbol);
    return result;
  }
  if (!isHarmless(name)) *found = unknownWork(*found);
  return result;
}

}  // namespace

void* cistern::preload::hipHook(void* handle, const char* name) noexcept {
  if (!isHipName(name)) return nullptr;
  const Entry entry;  // the runtime looks things up as well
  if (!entry.serves()) return nullptr;
  void* const answer = realDlsym(handle, name);
  if (answer == nullptr || answer != realDlsym(driverLibrary(), name)) return nullptr;
  void* const hook = hookFor(answer, name);
  return hook == answer ? nullptr : hook;
}

// The header may not declare these.
extern "C" {
hipError_t getProcAddress(const char*, void**, int, uint64_t, void*) __asm__("hipGetProcAddress");
hipError_t getProcAddressSpt(const char*, void**, int, uint64_t,
                             void*) __asm__("hipGetProcAddress_spt");
hipError_t getEntryPoint(const char*, void**, unsigned long long,
                         void*) __asm__("hipGetDriverEntryPoint");
hipError_t getEntryPointSpt(const char*, void**, unsigned long long,
                            void*) __asm__("hipGetDriverEntryPoint_spt");
}

CISTERN_HOOK hipError_t getProcAddress(const char* symbol, void** function, int version,
                                       uint64_t flags, void* status) {
  return lookUp(&Functions::hipGetProcAddress, symbol, function, version, flags, status);
}

CISTERN_HOOK hipError_t getProcAddressSpt(const char* symbol, void** function, int version,
                                          uint64_t flags, void* status) {
  return lookUp(&Functions::hipGetProcAddress_spt, symbol, function, version, flags, status);
}

CISTERN_HOOK hipError_t getEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                      void* status) {
  return lookUp(&Functions::hipGetDriverEntryPoint, symbol, function, flags, status);
}

CISTERN_HOOK hipError_t getEntryPointSpt(const char* symbol, void** function,
                                         unsigned long long flags, void* status) {
  return lookUp(&Functions::hipGetDriverEntryPoint_spt, symbol, function, flags, status);
}
