// Functions that submit work: each is reported to the order of the context, and passed on.
//
// The hooks are made from the types that the header gives the functions. The arguments say which
// stream it is: the one that is a stream, or the launch's attributes. Without either it is the
// default stream, and the spelling says which one that is.
//
// Included once for a vendor, behind its list CISTERN_SUBMITTING_FUNCTIONS.
#pragma once

#include <array>
#include <atomic>

#include "interop/preload/driver/submitted_work.hpp"
#include "interop/preload/hooks/rows.hpp"
#include "interop/preload/process/lookup.hpp"
#include "interop/preload/record/ledger.hpp"
#include "interop/preload/served/contexts.hpp"

namespace cistern::preload::GPU_NAMESPACE {
namespace {

#define CISTERN_INDEX(symbol, suffix, ...) k_##symbol##suffix,
enum Index : std::size_t { CISTERN_SUBMITTING_FUNCTIONS(CISTERN_INDEX) kFunctions };
#undef CISTERN_INDEX

#define CISTERN_SYMBOL(symbol, suffix, ...) #symbol #suffix,
constexpr std::array<const char*, kFunctions> kSymbols = {
    CISTERN_SUBMITTING_FUNCTIONS(CISTERN_SYMBOL)};
#undef CISTERN_SYMBOL

// The driver's own, once each was asked for.
std::array<std::atomic<void*>, kFunctions> real_functions{};

[[gnu::cold, gnu::noinline]] void* lookUp(std::size_t index) noexcept {
  void* const library = driverLibrary();
  void* const found = library == nullptr ? nullptr : realDlsym(library, kSymbols[index]);
  real_functions[index] = found;
  return found;
}

void* realFunction(std::size_t index) noexcept {
  void* const there = real_functions[index].load(std::memory_order_relaxed);
  return there != nullptr ? there : lookUp(index);
}

// ---- Which stream -------------------------------------------------------------------------------

template <class Argument>
StreamHandle streamIn(Argument) {
  return nullptr;
}
inline StreamHandle streamIn(StreamHandle stream) { return stream; }

template <class... Arguments>
StreamHandle streamAmong(Arguments... arguments) {
  StreamHandle found = nullptr;
  ((found = found != nullptr ? found : streamIn(arguments)), ...);
  return found;
}

// ---- The hooks ----------------------------------------------------------------------------------

template <std::size_t kIndex, bool kPerThread, class Function>
struct Hook;

template <std::size_t kIndex, bool kPerThread, class... Arguments>
struct Hook<kIndex, kPerThread, Code(Arguments...)> {
  static Code call(Arguments... arguments) {
    const auto real = reinterpret_cast<Code (*)(Arguments...)>(realFunction(kIndex));
    if (real == nullptr) return kNotInitialized;
    CountedWork counted;
    Contexts::beforeWork();
    Work work(streamMeant(streamAmong(arguments...), kPerThread));
    const Code result = real(arguments...);
    work.submitted(result);
    counted.ended();
    return result;
  }
};

#define CISTERN_ROW(symbol, suffix, ...)                                         \
  {#symbol #suffix,                                                              \
   reinterpret_cast<void*>(                                                      \
       &Hook<k_##symbol##suffix, (sizeof #suffix > 1), decltype(symbol)>::call), \
   sizeof #suffix > 1 __VA_OPT__(, ) __VA_ARGS__},
const Row kRows[] = {CISTERN_SUBMITTING_FUNCTIONS(CISTERN_ROW)};
#undef CISTERN_ROW

}  // namespace

Rows submittingRows() noexcept { return {kRows, kFunctions}; }

// ---- By their names, for programs that are linked to the driver ---------------------------------

extern __attribute__((visibility("hidden"))) void* const submitting[] __asm__(
    CISTERN_LABEL(submitting));
#define CISTERN_ENTRY(symbol, suffix, ...) \
  reinterpret_cast<void*>(&Hook<k_##symbol##suffix, (sizeof #suffix > 1), decltype(symbol)>::call),
__attribute__((used)) void* const submitting[] = {CISTERN_SUBMITTING_FUNCTIONS(CISTERN_ENTRY)};
#undef CISTERN_ENTRY

}  // namespace cistern::preload::GPU_NAMESPACE

#if defined(__x86_64__)
#define CISTERN_JUMP \
  "  endbr64\n"      \
  "  jmp *" CISTERN_LABEL(submitting) " + 8 * cistern_at(%rip)\n"
#elif defined(__aarch64__)
#define CISTERN_JUMP \
  "  hint #34\n"                                                  \
  "  adrp x16, " CISTERN_LABEL(submitting) " + 8 * cistern_at\n"             \
  "  ldr x16, [x16, :lo12:" CISTERN_LABEL(submitting) " + 8 * cistern_at]\n" \
  "  br x16\n"
#else
#error "the jump to a hook is not written for this processor: see the two above"
#endif

#define CISTERN_EXPORT(symbol, suffix, ...)                                        \
  asm("  .text\n  .p2align 4\n  .globl " #symbol #suffix                           \
      "\n"                                                                         \
      "  .type " #symbol #suffix ", STT_FUNC\n" #symbol #suffix ":\n" CISTERN_JUMP \
      "  .size " #symbol #suffix ", . - " #symbol #suffix                          \
      "\n"                                                                         \
      "  .set cistern_at, cistern_at + 1\n");
asm("  .set cistern_at, 0\n");
CISTERN_SUBMITTING_FUNCTIONS(CISTERN_EXPORT)
