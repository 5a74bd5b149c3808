#include "interop/preload/driver/functions.hpp"

#include <cstdlib>

#include <dlfcn.h>

namespace cistern::preload {
namespace {

// By its version: without one, the answer would be our own.
void* fromTheCLibrary(const char* name) noexcept {
  for (const char* const version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"}) {
    if (void* const found = dlvsym(RTLD_NEXT, name, version)) return found;
  }
  abort();  // a C library that we were not made for: nothing can go on without it
}

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

void* realDlsym(void* handle, const char* name) noexcept {
  using Look = void* (*)(void*, const char*);
  static const auto look = reinterpret_cast<Look>(fromTheCLibrary("dlsym"));
  return look(handle, name);
}

void* realDlopen() noexcept {
  static void* const open = fromTheCLibrary("dlopen");
  return open;
}

void* driverLibrary() noexcept {
  using Open = void* (*)(const char*, int);
  static const auto open = reinterpret_cast<Open>(realDlopen());
  return open("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
}

[[gnu::cold]] const Functions* detail::loadFunctions() noexcept {
  void* const library = driverLibrary();
  if (library == nullptr) return nullptr;
  // Two threads may fill a table each: they are the same, and the one that is too late is left.
  const Functions* none = nullptr;
  loaded_functions.compare_exchange_strong(none, fill(library));
  return loaded_functions;
}

}  // namespace cistern::preload
