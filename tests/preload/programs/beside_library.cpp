// A library that stands before a program beside Cistern's, as allocators, tracers and sandboxes do:
// it takes dlsym, dlopen, malloc and free, and passes them on.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include <dlfcn.h>
#include <unistd.h>

extern "C" {
void* __libc_malloc(std::size_t bytes);  // NOLINT: the C library's own
void __libc_free(void* pointer);         // NOLINT
}

namespace {

std::atomic<unsigned long> asked_malloc{0}, asked_dlsym{0}, asked_dlopen{0};

void* versioned(const char* name) {
  for (const char* const version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"}) {
    if (void* const found = dlvsym(RTLD_NEXT, name, version)) return found;
  }
  abort();
}

[[gnu::destructor]] void say() {
  if (std::getenv("BESIDE_SAYS") == nullptr) return;
  char text[128];
  const int length =
      std::snprintf(text, sizeof text, "beside: malloc %d dlsym %d dlopen %d\n",
                    int(asked_malloc > 0), int(asked_dlsym > 0), int(asked_dlopen > 0));
  (void)!write(2, text, std::size_t(length));
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void* malloc(std::size_t bytes) {
  ++asked_malloc;
  return __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void free(void* pointer) { __libc_free(pointer); }

// The next one's, which may be Cistern's: so one that hooks dlsym goes on.
__attribute__((visibility("default"))) void* dlsym(void* handle, const char* name) {
  using Look = void* (*)(void*, const char*);
  static const auto look = reinterpret_cast<Look>(versioned("dlsym"));
  ++asked_dlsym;
  return look(handle, name);
}

__attribute__((visibility("default"))) void* dlopen(const char* name, int mode) {
  using Open = void* (*)(const char*, int);
  static const auto open = reinterpret_cast<Open>(versioned("dlopen"));
  ++asked_dlopen;
  return open(name, mode);
}
}
