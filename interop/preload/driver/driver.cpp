// Finds the driver when the program has loaded it.
#include "interop/preload/driver/driver.hpp"

#include "interop/preload/process/lookup.hpp"
#include "interop/preload/record/ledger.hpp"

namespace cistern::preload::GPU_NAMESPACE {

static Functions* fill(void* library) {
  auto* const functions = new Functions;
#define CISTERN_LOOK_UP(name, ...) \
  functions->name = reinterpret_cast<decltype(functions->name)>(realDlsym(library, #name));
  CISTERN_HOOKED_FUNCTIONS(CISTERN_LOOK_UP)
  CISTERN_CALLED_FUNCTIONS(CISTERN_LOOK_UP)
#undef CISTERN_LOOK_UP
  return functions;
}

[[gnu::cold]] const Functions* detail::loadFunctions() noexcept {
  void* const library = driverLibrary();
  if (library == nullptr) return nullptr;
  noteVendor(kBackend);
  // Two threads may fill a table each: they are the same, and the one that is too late is left.
  const Functions* none = nullptr;
  loaded_functions.compare_exchange_strong(none, fill(library));
  return loaded_functions;
}

}  // namespace cistern::preload::GPU_NAMESPACE
