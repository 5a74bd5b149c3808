// How a program finds the driver's functions: dlsym (process/lookup.cpp), and cuGetProcAddress in
// both versions. (cudaGetDriverEntryPoint asks cuGetProcAddress.) The static runtime, which no
// symbol of ours can intercept, finds all of them this way.
//
// The C library and the driver answer the lookup, for every version, spelling and flag. Only their
// answer is examined: if it is a function of the driver's that has a hook, the answer becomes the
// hook. So a version without a hook is never replaced by one that has a hook. A function that is
// not known at all is replaced by a stub, for it may submit work.
//
// A process that is not served gets such answers too, for blocks that it may open, but no hook that
// sees work.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <unordered_map>

#include "interop/preload/hooks/hook_entry.hpp"
#include "interop/preload/hooks/rows.hpp"
#include "interop/preload/process/lookup.hpp"

using namespace cistern::preload;
using namespace cistern::preload::cuda;

namespace {

const Row kRows[] = {
#define CISTERN_ROW(symbol, name, version, per_thread) \
  {#symbol, reinterpret_cast<void*>(&::symbol), per_thread, name, version},
    CISTERN_HOOKED_FUNCTIONS(CISTERN_ROW)
#undef CISTERN_ROW
};

/// By what the driver answers. Two rows may be answered alike: the name decides.
using HookTable = std::unordered_multimap<const void*, const Row*>;

// The first row whose name has this answer: a function that the driver has in only one spelling
// answers for both.
void addRow(HookTable& table, const void* real, const Row& row) {
  const auto [first, last] = table.equal_range(real);
  const bool there = std::any_of(first, last, [&](const auto& entry) {
    return std::strcmp(entry.second->name, row.name) == 0;
  });
  if (real != nullptr && !there) table.emplace(real, &row);
}

// Each way in which the driver answers with its function in the form that has a hook.
const HookTable* makeTable(const Functions& driver) {
  auto* const table = new HookTable;
  const auto add = [&](const void* real, const Row& row) { addRow(*table, real, row); };
  std::size_t next = 0;
#define CISTERN_ADD(symbol, ...) add(reinterpret_cast<const void*>(driver.symbol), kRows[next++]);
  CISTERN_HOOKED_FUNCTIONS(CISTERN_ADD)
#undef CISTERN_ADD
  void* const library = driverLibrary();
  const Rows submitting = active() ? submittingRows() : Rows{};
  for (const Row& row : submitting) add(realDlsym(library, row.symbol), row);
  if (driver.cuGetProcAddress_v2 == nullptr) return table;
  const auto ask = [&](const Row& asked) {
    void* answer = nullptr;
    const cuuint64_t flags = asked.per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                              : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    const CUresult result =
        driver.cuGetProcAddress_v2(asked.name, &answer, asked.version, flags, nullptr);
    if (result == CUDA_SUCCESS) add(answer, asked);
  };
  std::for_each(std::begin(kRows), std::end(kRows), ask);
  std::for_each(submitting.begin(), submitting.end(), ask);
  return table;
}

const HookTable& hookTable(const Functions& driver) noexcept {
  static std::atomic<const HookTable*> made{nullptr};
  const HookTable* table = made.load(std::memory_order_acquire);
  if (table != nullptr) return *table;
  table = makeTable(driver);  // the same by any thread: one that is too late is left
  const HookTable* none = nullptr;
  return made.compare_exchange_strong(none, table) ? *table : *none;
}

// The driver's functions are called cuX; other libraries' are cudaX, cublasX and so on.
bool isDriverName(const char* name) noexcept {
  return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

// The hook for the driver's answer to the name. Without a hook, it is the answer itself if that is
// known to submit nothing, else a stub for it.
void* hookFor(void* answer, const char* name, const char* Row::*as) noexcept {
  const Functions* const functions = driver();
  if (functions == nullptr || answer == nullptr || name == nullptr) return answer;
  const auto [first, last] = hookTable(*functions).equal_range(answer);
  for (auto it = first; it != last; ++it) {
    if (std::strcmp(it->second->*as, name) == 0) return it->second->hook;
  }
  if (!active() || !isDriverName(name) || isHarmless(name)) return answer;
  noteUnknown(name);
  return unknownWork(answer);
}

// The driver's answer, or its hook.
template <class Function, class... Arguments>
CUresult lookUp(Function FunctionTable::*function, const char* name, void** found,
                Arguments... arguments) {
  const Entry entry;
  const CUresult result = entry.pass(function, name, found, arguments...);
  if (result == CUDA_SUCCESS && found != nullptr && entry.opens())
    *found = hookFor(*found, name, &Row::name);
  return result;
}

}  // namespace

CISTERN_HOOK CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                          cuuint64_t flags,
                                          CUdriverProcAddressQueryResult* status) {
  return lookUp(&Functions::cuGetProcAddress_v2, symbol, function, version, flags, status);
}

CISTERN_HOOK CUresult cuGetProcAddress(const char* symbol, void** function, int version,
                                       cuuint64_t flags) {
  return lookUp(&Functions::cuGetProcAddress, symbol, function, version, flags);
}

// ---- dlsym --------------------------------------------------------------------------------------

void* cistern::preload::cudaHook(void* handle, const char* name) noexcept {
  if (!isDriverName(name)) return nullptr;
  const Entry entry;  // the driver looks things up as well
  if (!entry.opens()) return nullptr;
  void* const answer = realDlsym(handle, name);
  if (answer == nullptr || answer != realDlsym(driverLibrary(), name)) return nullptr;
  void* const hook = hookFor(answer, name, &Row::symbol);
  return hook == answer ? nullptr : hook;
}
