#include "interop/preload/process/c_library.hpp"

#include <cstdlib>
#include <initializer_list>

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

}  // namespace

void* realDlsym(void* handle, const char* name) noexcept {
  using Look = void* (*)(void*, const char*);
  static const auto look = reinterpret_cast<Look>(fromTheCLibrary("dlsym"));
  return look(handle, name);
}

// dlvsym passes over libraries that give their functions no version; dlsym does not.
void* nextInLine(const char* name) noexcept {
  void* const next = realDlsym(RTLD_NEXT, name);
  return next != nullptr ? next : fromTheCLibrary(name);
}

void* loadedLibrary(const char* name) noexcept {
  using Open = void* (*)(const char*, int);
  static const auto open = reinterpret_cast<Open>(fromTheCLibrary("dlopen"));
  return open(name, RTLD_LAZY | RTLD_NOLOAD);
}

}  // namespace cistern::preload
