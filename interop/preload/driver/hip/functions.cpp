// Finds HIP's runtime when the program has loaded it.
#include <cstring>
#include <string>

#include <link.h>

#include "interop/preload/driver/vendor_names.hpp"
#include "interop/preload/process/c_library.hpp"
#include "interop/preload/record/ledger.hpp"

namespace cistern::preload::hip {
namespace {

// Its name has a version, which is the program's; packages give it another one, or another folder.
int isRuntime(dl_phdr_info* library, std::size_t, void* found) {
  const char* const file = std::strrchr(library->dlpi_name, '/');
  const char* const name = file == nullptr ? library->dlpi_name : file + 1;
  if (std::strncmp(name, "libamdhip64", std::strlen("libamdhip64")) != 0) return 0;
  *static_cast<std::string*>(found) = library->dlpi_name;
  return 1;
}

Functions* fill(void* library) {
  auto* const functions = new Functions;
#define CISTERN_LOOK_UP(name) \
  functions->name = reinterpret_cast<decltype(functions->name)>(realDlsym(library, #name));
  CISTERN_HOOKED_FUNCTIONS(CISTERN_LOOK_UP)
  CISTERN_CALLED_FUNCTIONS(CISTERN_LOOK_UP)
#undef CISTERN_LOOK_UP
  return functions;
}

}  // namespace

void* driverLibrary() noexcept {
  std::string file;
  return dl_iterate_phdr(isRuntime, &file) == 0 ? nullptr : loadedLibrary(file.c_str());
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

}  // namespace cistern::preload::hip
