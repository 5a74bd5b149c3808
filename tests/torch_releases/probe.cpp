// Compiled into the extension by -finstrument-functions: remembers which functions were entered.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <dlfcn.h>

#define BARE __attribute__((no_instrument_function))
#define PROBE extern "C" BARE __attribute__((visibility("default")))

namespace {

constexpr std::size_t kSlots = std::size_t{1} << 16;  // far more than the extension has functions
std::array<std::atomic<void*>, kSlots> entered;

/// The slot of the function, or the free one that is to be its.
BARE std::atomic<void*>& slotOf(void* function) {
  std::size_t at = (reinterpret_cast<std::uintptr_t>(function) >> 4) % kSlots;
  for (;; at = (at + 1) % kSlots) {
    void* none = nullptr;
    if (entered[at].load(std::memory_order_relaxed) == function) return entered[at];
    if (entered[at].compare_exchange_strong(none, function) || none == function) return entered[at];
  }
}

}  // namespace

PROBE void __cyg_profile_func_enter(void* function, void*) { (void)slotOf(function); }
PROBE void __cyg_profile_func_exit(void*, void*) {}

/// Whether the function was entered since the last clear.
PROBE int cistern_probe_entered(void* function) {
  std::size_t at = (reinterpret_cast<std::uintptr_t>(function) >> 4) % kSlots;
  for (;; at = (at + 1) % kSlots) {
    void* const there = entered[at].load(std::memory_order_relaxed);
    if (there == function || there == nullptr) return there == function ? 1 : 0;
  }
}
PROBE void cistern_probe_clear() {
  for (auto& slot : entered) slot.store(nullptr, std::memory_order_relaxed);
}
/// The address that the extension is loaded at.
PROBE void* cistern_probe_base() {
  Dl_info info{};
  return dladdr(reinterpret_cast<void*>(&cistern_probe_clear), &info) != 0 ? info.dli_fbase
                                                                           : nullptr;
}
