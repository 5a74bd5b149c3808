// Finds CUDA's driver when the program has loaded it.
#include <dlfcn.h>

#include "interop/preload/driver/vendor_names.hpp"
#include "interop/preload/process/c_library.hpp"
#include "interop/preload/record/ledger.hpp"

namespace cistern::preload::cuda {
namespace {

Functions* fill(void* library) {
  auto* const functions = new Functions;
#define CISTERN_LOOK_UP(name, ...) \
  functions->name = reinterpret_cast<decltype(functions->name)>(realDlsym(library, #name));
  CISTERN_HOOKED_FUNCTIONS(CISTERN_LOOK_UP)
  CISTERN_CALLED_FUNCTIONS(CISTERN_LOOK_UP)
#undef CISTERN_LOOK_UP
  functions->cuGetProcAddress_v1 =
      reinterpret_cast<GetProcAddressV1>(realDlsym(library, "cuGetProcAddress"));
  return functions;
}

}  // namespace

void* driverLibrary() noexcept { return loadedLibrary("libcuda.so.1"); }

[[gnu::cold]] const Functions* detail::loadFunctions() noexcept {
  void* const library = driverLibrary();
  if (library == nullptr) return nullptr;
  noteVendor(kBackend);
  // Two threads may fill a table each: they are the same, and the one that is too late is left.
  const Functions* none = nullptr;
  loaded_functions.compare_exchange_strong(none, fill(library));
  return loaded_functions;
}

}  // namespace cistern::preload::cuda
