// Sleep: a pool's memory goes back to the device for a while. Its blocks keep their addresses, and
// get memory there again at wake. docs/sleep.md answers users' questions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cistern/error.hpp"
#include "cistern/types.hpp"

namespace cistern {

/// The fate of a block's bytes while its pool sleeps.
enum class Contents : std::uint8_t {
  kSave,  ///< they are in pinned host memory meanwhile, and the same after wake
  kDrop,  ///< they are anything after wake
  kZero,  ///< they are zero after wake
};

/// The fate of the pinned host memory that pools slept in.
enum class HostMemory : std::uint8_t {
  kKeep,      ///< it stays pinned, for the next sleep of any pool
  kGiveBack,  ///< it goes back to the host
  /// It stays pinned with the bytes, for Pools::copySaved, until a sleep of that pool begins. Other
  /// pools sleep in host memory of their own meanwhile.
  kKeepSaved,
};

/// Why some memory of a pool that sleeps is still the allocator's.
enum class WhyStayed : std::uint8_t {
  kExported,  ///< another process has it, or may open it
  kLent,      ///< a block of the default pool lies in it: use_on_oom
  kRefused,   ///< the device did not unmap it, or did not take it back
  kOnHost,    ///< it lies in the host's memory already: overflow
  kHeld,      ///< the program holds it in place: CachingAllocator::hold, Pools::hold
};

/// "exported", "lent", "refused", "on host", "held".
CISTERN_API const char* whyStayedName(WhyStayed why);

/// A page of a pool that sleeps, which has stayed. In bytes.
struct StayedMemory {
  MempoolId_t pool;
  Address address = 0;
  std::uint64_t bytes = 0;
  WhyStayed why = WhyStayed::kExported;
};

/// The outcome of a sleep. In bytes: released + stayed is what the pools had reserved as the sleep
/// began. (Other threads may have changed that since the program asked: memoryStats.) They have
/// `stayed` bytes reserved while they sleep.
struct CISTERN_API SleepReport {
  std::uint64_t released = 0;  ///< given back to the device
  std::uint64_t stayed = 0;
  std::uint64_t saved = 0;        ///< copied to the host, with small gaps between blocks
  std::uint64_t live = 0;         ///< of that, the bytes of blocks
  std::uint64_t pinned_anew = 0;  ///< host memory that this sleep had to pin
  std::vector<StayedMemory> why;  ///< what has stayed, by address

  /// A line, and one for each page that has stayed.
  std::string text() const;
};

/// The outcome of a wake. In bytes.
struct CISTERN_API WakeReport {
  std::uint64_t mapped = 0;    ///< taken from the device
  std::uint64_t restored = 0;  ///< copied from the host
  std::uint64_t pinned = 0;    ///< host memory that is kept, for the next sleep or with bytes
  std::uint64_t resident = 0;  ///< host memory of the process afterwards; 0 where nothing tells

  std::string text() const;
};

/// The host has too little memory to keep what is to be saved. Nothing was changed.
class CISTERN_API HostShortage : public Error {
 public:
  using Error::Error;
};

/// The moments that a hook of Pools::attachSleepHook is called at.
enum class SleepMoment : std::uint8_t { kBeforeSleep, kAfterSleep, kBeforeWake, kAfterWake };

/// Pools are about to sleep or wake, or have done so.
struct SleepNotice {
  SleepMoment moment{};
  std::vector<MempoolId_t> pools;
};

}  // namespace cistern
