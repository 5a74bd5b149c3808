// Functions that are not known. Their arguments are passed on unchanged, so nothing need be known
// of them. Each answer has a stub of its own; a fixed number of stubs is built in. A stub says
// which it is, and goes on to one piece of code for all. That code saves every register that may
// hold an argument, tells the order, and jumps to the function.
//
// Some are exported by name as well, for programs that are linked to the driver. These submit work,
// and the header of this build does not declare them.
//
// Included once for a vendor, behind its list CISTERN_UNDECLARED_FUNCTIONS.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "allocator/base/mutex.hpp"
#include "interop/preload/driver/submitted_work.hpp"
#include "interop/preload/hooks/hook_entry.hpp"
#include "interop/preload/hooks/rows.hpp"
#include "interop/preload/process/lookup.hpp"

namespace cistern::preload::GPU_NAMESPACE {
namespace {

#define CISTERN_NAME(symbol) #symbol,
constexpr const char* kNames[] = {CISTERN_UNDECLARED_FUNCTIONS(CISTERN_NAME)};
#undef CISTERN_NAME
constexpr std::size_t kNamed = sizeof kNames / sizeof *kNames;
constexpr std::size_t kStubs = 1024;  // with the named ones; see the assembly

std::array<std::atomic<void*>, kStubs> functions{};
std::atomic<std::size_t> used{kNamed};
Mutex changing{LockRank::kDriverFunctions};

Code notThere() noexcept { return kNotInitialized; }

void* named(std::size_t index) noexcept {
  void* const library = driverLibrary();
  void* const found = library == nullptr ? nullptr : realDlsym(library, kNames[index]);
  if (found == nullptr) return reinterpret_cast<void*>(&notThere);
  functions[index] = found;
  return found;
}

}  // namespace

extern __attribute__((visibility("hidden"))) const char stubs[] __asm__(CISTERN_LABEL(stubs));

/// Notes the work and returns the stub's function. Called before the jump to that function.
void* unknownWorkBegins(std::size_t index) __asm__(CISTERN_LABEL(unknown_work));
__attribute__((visibility("hidden"), used)) void* unknownWorkBegins(std::size_t index) {
  countUnknownWork();
  Contexts::beforeWork();
  Work::anyBegins();
  void* const function = functions[index].load(std::memory_order_relaxed);
  return function != nullptr ? function : named(index);
}

namespace {

constexpr std::size_t kStubBytes = 16;

void* stubAt(std::size_t index) noexcept { return const_cast<char*>(stubs + index * kStubBytes); }

}  // namespace

void* unknownWork(void* function) noexcept {
  const MutexLock lock(changing);
  for (std::size_t i = kNamed; i < used; ++i) {
    if (functions[i] == function) return stubAt(i);
  }
  if (used == kStubs) {  // then its work is not seen
    contexts().workIsUnseen();
    return function;
  }
  functions[used] = function;
  return stubAt(used++);
}

}  // namespace cistern::preload::GPU_NAMESPACE

#if defined(__x86_64__)
asm(R"(
  .text
  .p2align 4
  .globl )" CISTERN_LABEL(stubs) R"(
  .hidden )" CISTERN_LABEL(stubs) R"(
)" CISTERN_LABEL(stubs) R"(:
  .set cistern_stub, 0
  .rept 1024
  .p2align 4
  endbr64
  pushq $cistern_stub
  .byte 0xe9
  .long )" CISTERN_LABEL(any_function) R"( - . - 4
  .set cistern_stub, cistern_stub + 1
  .endr

  .p2align 4
)" CISTERN_LABEL(any_function) R"(:
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  pushq %rax
  pushq %r10
  subq $128, %rsp
  movups %xmm0, (%rsp)
  movups %xmm1, 16(%rsp)
  movups %xmm2, 32(%rsp)
  movups %xmm3, 48(%rsp)
  movups %xmm4, 64(%rsp)
  movups %xmm5, 80(%rsp)
  movups %xmm6, 96(%rsp)
  movups %xmm7, 112(%rsp)
  movq 192(%rsp), %rdi
  call )" CISTERN_LABEL(unknown_work) R"(
  movq %rax, 192(%rsp)
  movups (%rsp), %xmm0
  movups 16(%rsp), %xmm1
  movups 32(%rsp), %xmm2
  movups 48(%rsp), %xmm3
  movups 64(%rsp), %xmm4
  movups 80(%rsp), %xmm5
  movups 96(%rsp), %xmm6
  movups 112(%rsp), %xmm7
  addq $128, %rsp
  popq %r10
  popq %rax
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  popq %r11
  jmp *%r11
)");
#define CISTERN_NAMED_JUMP "  endbr64\n  pushq $cistern_at\n  jmp " CISTERN_LABEL(any_function) "\n"
#elif defined(__aarch64__)
asm(R"(
  .text
  .p2align 4
  .globl )" CISTERN_LABEL(stubs) R"(
  .hidden )" CISTERN_LABEL(stubs) R"(
)" CISTERN_LABEL(stubs) R"(:
  .set cistern_stub, 0
  .rept 1024
  .p2align 4
  hint #34
  mov x16, #cistern_stub
  b )" CISTERN_LABEL(any_function) R"(
  .set cistern_stub, cistern_stub + 1
  .endr

  .p2align 4
)" CISTERN_LABEL(any_function) R"(:
  stp x29, x30, [sp, #-224]!
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  str x8, [sp, #80]
  stp q0, q1, [sp, #96]
  stp q2, q3, [sp, #128]
  stp q4, q5, [sp, #160]
  stp q6, q7, [sp, #192]
  mov x0, x16
  bl )" CISTERN_LABEL(unknown_work) R"(
  mov x16, x0
  ldp q6, q7, [sp, #192]
  ldp q4, q5, [sp, #160]
  ldp q2, q3, [sp, #128]
  ldp q0, q1, [sp, #96]
  ldr x8, [sp, #80]
  ldp x6, x7, [sp, #64]
  ldp x4, x5, [sp, #48]
  ldp x2, x3, [sp, #32]
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #224
  br x16
)");
#define CISTERN_NAMED_JUMP \
  "  hint #34\n  mov x16, #cistern_at\n  b " CISTERN_LABEL(any_function) "\n"
#else
#error "a stub is not written for this processor: see the two above"
#endif

#define CISTERN_EXPORT(symbol)                                                               \
  asm("  .text\n  .p2align 4\n  .globl " #symbol "\n  .type " #symbol ", STT_FUNC\n" #symbol \
      ":\n" CISTERN_NAMED_JUMP "  .size " #symbol ", . - " #symbol                           \
      "\n"                                                                                   \
      "  .set cistern_at, cistern_at + 1\n");
asm("  .set cistern_at, 0\n");
CISTERN_UNDECLARED_FUNCTIONS(CISTERN_EXPORT)
