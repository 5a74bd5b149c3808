// The driver's calls that save a process and restore it, as a table of functions. The types are the
// driver's in all but name: the command is built without its headers.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <sys/types.h>

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

}  // namespace cistern::command
