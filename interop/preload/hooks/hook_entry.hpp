// Every hook begins with an Entry: the driver behind it, and whether the call is one to serve.
#pragma once

#include <exception>
#include <optional>

#include "interop/preload/driver/driver.hpp"
#include "interop/preload/driver/last_resort.hpp"
#include "interop/preload/process/cancellation.hpp"
#include "interop/preload/process/preload_settings.hpp"
#include "interop/preload/record/ledger.hpp"
#include "interop/preload/served/contexts.hpp"

/// A function of the driver's that the program finds here first.
#define CISTERN_HOOK extern "C" __attribute__((visibility("default")))

namespace cistern::preload::GPU_NAMESPACE {

/// While it lives, calls that the driver makes of itself on this thread pass, and the thread is
/// cancelled in the driver's own functions alone.
class Entry {
 public:
  Entry() noexcept : outermost_(depth_++ == 0), driver_(GPU_NAMESPACE::driver()) {}
  ~Entry() { --depth_; }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  /// Whether the program called, there is a driver, and this process is served.
  bool serves() const noexcept { return active() && opens(); }
  /// The same for a process that may not be served: it opens blocks that a served process shares.
  bool opens() const noexcept {
    return outermost_ && driver_ != nullptr && !contexts().leftToParent();
  }
  /// Calls the driver's own function. A thread that is cancelled there is unwound through here.
  template <class Function, class... Arguments>
  Code pass(Function FunctionTable::*function, Arguments... arguments) const {
    if (driver_ == nullptr || driver_->*function == nullptr) return kNotInitialized;
    const CancelState as_the_program_has_it(uncancelled_.before());
    return (driver_->*function)(arguments...);
  }

  /// The contexts, if the call is one to serve as a rule: the program has called, a call was served
  /// before, and nothing is captured. Else null, and an Entry decides.
  static Contexts* usual() noexcept {
    Contexts* const all = Contexts::thatServe();
    if (depth_ != 0 || all == nullptr || all->captures().maybe()) [[unlikely]]
      return nullptr;
    return all;
  }
  /// Stands for an entry while it lives, after usual().
  class Usual {
   public:
    Usual() noexcept { depth_ = 1; }
    ~Usual() { depth_ = 0; }
    Usual(const Usual&) = delete;
    Usual& operator=(const Usual&) = delete;
  };

 private:
  static inline constinit thread_local int depth_ = 0;
  const NotCancelled uncancelled_;
  const bool outermost_;
  const Functions* const driver_;
};

/// The driver's code for the exception of a verb. Call it in a handler.
Code resultOfException() noexcept;

namespace detail {
inline constinit thread_local Code last_failure = kSuccess;
}  // namespace detail

/// Returns the result of a served call. A failure of HIP's is kept for the program to find
/// (hip/failure_hooks.cpp).
inline Code told(Code result) noexcept {
  if (kKeepsFailures && result != kSuccess) [[unlikely]]
    detail::last_failure = result;
  return result;
}

/// How often a thread gives back and asks again. If nothing is left, an allocator may have given
/// back for a request of its own, so a few rounds are enough. If other threads hold memory in
/// transit, more rounds help, but the threads may go on for ever.
class Rounds {
 public:
  bool over() const { return in_vain_ >= kMost; }
  void note(Gave gave) {
    in_vain_ = gave == Gave::kSome ? 0 : in_vain_ + (gave == Gave::kNone ? kMost / 4 : 1);
  }

 private:
  static constexpr int kMost = 16;
  int in_vain_ = 0;
};

/// Calls the driver's function. If the device has no memory, gives back its cached memory and calls
/// again. That waits for the device, as the program's own frees would have. `device`: the device of
/// the memory; else the current one.
template <class Call>
Code withRoom(const Entry& entry, Call call, std::optional<int> device = std::nullopt) {
  const Code result = call();
  if (result != kOutOfMemory || !entry.serves()) return result;
  int current = 0;
  if (!device && driver()->currentDevice(&current) != kSuccess) return result;
  const LastResort alone(device.value_or(current));
  // First without giving back: the thread whose turn was before may have made room.
  Rounds rounds;
  for (;;) {
    driver()->forgetFailure();
    if (const Code again = call(); again != kOutOfMemory || rounds.over()) return again;
    rounds.note(contexts().giveBack(device.value_or(current)));
  }
}

/// Memory that is the driver's still, counted.
template <class Function, class... Arguments>
Code passCounted(Passed why, Function FunctionTable::*function, Arguments... arguments) {
  const Entry entry;
  if (entry.serves()) passed(why);
  return withRoom(entry, [&] { return entry.pass(function, arguments...); });
}

}  // namespace cistern::preload::GPU_NAMESPACE
