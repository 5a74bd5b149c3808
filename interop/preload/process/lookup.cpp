#include "interop/preload/process/lookup.hpp"

#include <cstdlib>
#include <initializer_list>

#include <dlfcn.h>

namespace cistern::preload {
// By its version: without one, the answer would be our own.
static void* fromTheCLibrary(const char* name) noexcept {
  for (const char* const version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"}) {
    if (void* const found = dlvsym(RTLD_NEXT, name, version)) return found;
  }
  abort();  // a C library that we were not made for: nothing can go on without it
}

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

// dlsym and dlopen, as the program calls them.
//
// Both depend on who calls: RTLD_NEXT is what comes after the caller, $ORIGIN is where the caller
// lies. So if the answer is not ours, the function is jumped to, not called, and sees the program
// as its caller.

using namespace cistern::preload;

extern "C" {

__attribute__((visibility("hidden"))) void* cistern_next_dlsym;
__attribute__((visibility("hidden"))) void* cistern_next_dlopen;

/// The hook to answer dlsym with; null where the next in line is to answer.
__attribute__((visibility("hidden"), used)) void* cistern_find_hook(void* handle,
                                                                    const char* name) {
  if (cistern_next_dlsym == nullptr) cistern_next_dlsym = nextInLine("dlsym");
  if (name == nullptr) return nullptr;
  void* const hook = cudaHook == nullptr ? nullptr : cudaHook(handle, name);
  return hook != nullptr || hipHook == nullptr ? hook : hipHook(handle, name);
}

__attribute__((visibility("hidden"), used)) void cistern_find_dlopen() {
  if (cistern_next_dlopen == nullptr) cistern_next_dlopen = nextInLine("dlopen");
}
}

#if defined(__x86_64__)
asm(R"(
  .text
  .macro cistern_entry name
  .p2align 4
  .globl \name
  .type \name, @function
\name:
  endbr64
  pushq %rdi
  pushq %rsi
  subq $8, %rsp
  .endm
  .macro cistern_leave
  addq $8, %rsp
  popq %rsi
  popq %rdi
  .endm

  cistern_entry cistern_dlsym
  call cistern_find_hook
  cistern_leave
  testq %rax, %rax
  jne 1f
  jmp *cistern_next_dlsym(%rip)
1:
  ret
  .size cistern_dlsym, . - cistern_dlsym

  cistern_entry cistern_dlopen
  call cistern_find_dlopen
  cistern_leave
  andl $~8, %esi
  jmp *cistern_next_dlopen(%rip)
  .size cistern_dlopen, . - cistern_dlopen
)");
#elif defined(__aarch64__)
asm(R"(
  .text
  .macro cistern_entry name
  .p2align 4
  .globl \name
  .type \name, %function
\name:
  stp x29, x30, [sp, #-32]!
  mov x29, sp
  stp x0, x1, [sp, #16]
  .endm
  .macro cistern_leave
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .endm

  cistern_entry cistern_dlsym
  bl cistern_find_hook
  mov x9, x0
  cistern_leave
  cbz x9, 1f
  mov x0, x9
  ret
1:
  adrp x16, cistern_next_dlsym
  ldr x16, [x16, :lo12:cistern_next_dlsym]
  br x16
  .size cistern_dlsym, . - cistern_dlsym

  cistern_entry cistern_dlopen
  bl cistern_find_dlopen
  cistern_leave
  and w1, w1, #~8
  adrp x16, cistern_next_dlopen
  ldr x16, [x16, :lo12:cistern_next_dlopen]
  br x16
  .size cistern_dlopen, . - cistern_dlopen
)");
#else
#error "dlsym is not written for this processor: see the two above"
#endif

// In the versions in which programs ask for them: old ones, and since glibc 2.34.
asm(".symver cistern_dlsym, dlsym@" CISTERN_GLIBC_BASE);
asm(".symver cistern_dlopen, dlopen@" CISTERN_GLIBC_BASE);
asm(".globl cistern_dlsym_new\n.set cistern_dlsym_new, cistern_dlsym\n"
    ".symver cistern_dlsym_new, dlsym@@GLIBC_2.34");
asm(".globl cistern_dlopen_new\n.set cistern_dlopen_new, cistern_dlopen\n"
    ".symver cistern_dlopen_new, dlopen@@GLIBC_2.34");
