// The driver's calls that save a process and restore it, as a table of functions. The types are the
// driver's in all but name: the command is built without its headers.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include <sys/types.h>

#include "cistern/error.hpp"
#include "interop/command/sleep/named_process.hpp"

namespace cistern::command {

/// CUresult.
using DriverCode = int;
inline constexpr DriverCode kDriverSuccess = 0, kDriverNoMemory = 2, kDriverNotInitialized = 3,
                            kDriverIllegalState = 401, kDriverNotReady = 600,
                            kDriverNotSupported = 801;

/// CUprocessState.
enum class SavedState : int { kRunning = 0, kLocked = 1, kSaved = 2, kFailed = 3 };

/// CUcheckpointLockArgs. The arguments of the other calls have the same size, and are all zero.
struct LockArguments {
  std::uint32_t timeout_ms = 0;  ///< 0: without end
  std::uint32_t reserved0 = 0;
  std::array<std::uint64_t, 7> reserved{};
};
static_assert(sizeof(LockArguments) == 64);

/// The functions of libcuda.so.1.
struct SavingDriver {
  DriverCode (*init)(unsigned flags) = nullptr;                            ///< cuInit
  DriverCode (*version)(int* version) = nullptr;                           ///< cuDriverGetVersion
  DriverCode (*error_name)(DriverCode code, const char** name) = nullptr;  ///< cuGetErrorName
  DriverCode (*state)(int pid, int* state) = nullptr;      ///< cuCheckpointProcessGetState
  DriverCode (*lock)(int pid, void* arguments) = nullptr;  ///< cuCheckpointProcessLock
  DriverCode (*save)(int pid, void*) = nullptr;            ///< cuCheckpointProcessCheckpoint
  DriverCode (*restore)(int pid, void*) = nullptr;         ///< cuCheckpointProcessRestore
  DriverCode (*unlock)(int pid, void*) = nullptr;          ///< cuCheckpointProcessUnlock

  /// "cuCheckpointProcessLock: CUDA_ERROR_NOT_READY"
  std::string describe(const char* call, DriverCode code) const;
};

/// The machine's driver, initialised. Throws Error if there is none, it has no GPU, or is too old.
SavingDriver loadSavingDriver();

// Puts a whole process to sleep, and wakes it: the order of the steps, and what is undone when one
// of them fails.

/// A call of the driver did not return in time. Its thread is still in it, so this command has to
/// end without waiting for threads.
class DriverStuck : public Error {
 public:
  using Error::Error;
};

/// Throws Error unless the driver can put the process to sleep now: it uses CUDA, and runs.
void requireAwake(const SavingDriver& driver, const NamedProcess& process);
/// Throws Error unless the driver can wake the process now: it sleeps, or a command that has ended
/// has left it locked.
void requireAsleep(const SavingDriver& driver, const NamedProcess& process);

/// The process empties its caches, is locked, and is saved to host memory. Returns what happened,
/// in lines. If anything fails before the end, or a signal asks this command to end, the process
/// goes on, and this throws Error, or DriverStuck. `most` bounds the whole.
std::string putToSleep(const SavingDriver& driver, const NamedProcess& process,
                       std::chrono::milliseconds most);
/// The process is restored and unlocked. Returns what happened, in lines. If a GPU has less free
/// memory than the process had there, or the driver cannot restore it, it sleeps on, and this
/// throws Error, or DriverStuck.
std::string wake(const SavingDriver& driver, const NamedProcess& process,
                 std::chrono::milliseconds most);

}  // namespace cistern::command
