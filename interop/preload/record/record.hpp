// The counters of one process for its device memory, in a file that it shares with `cistern run`.
//
// Both map the file, so the counts survive however the process ends, also when it is killed. Each
// process has a file, record_<random> in the folder that CISTERN_RUN_FOLDER names. Counters are
// relaxed atomics; a reader sees each of them whole, and all of them exact once the process has
// ended.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "interop/preload/process/identity.hpp"

namespace cistern::preload {

inline constexpr std::uint32_t kRecordVersion = 6;
inline constexpr char kRecordPrefix[] = "record_";
inline constexpr char kTracePrefix[] = "trace_";

// Names of functions are as CUDA and HIP spell them: {api} is cuda or hip, {driver} cu or hip.

/// Calls that Cistern serves.
enum class Served : std::uint8_t { kMalloc, kFree, kMallocAsync, kFreeAsync };
inline constexpr std::size_t kServedCount = 4;
inline constexpr std::array<const char*, kServedCount> kServedNames = {
    "{api}Malloc", "{api}Free", "{api}MallocAsync", "{api}FreeAsync"};

/// Calls that are the driver's still, and why.
enum class Passed : std::uint8_t {
  kManaged,
  kPitched,
  kArray,
  kPool,
  kOtherContext,
  kGraph,
  kCapture,
  kIpc,
  kPages,
  kProperties,
  kForeignFree,
  kWrongFree,
  kIpcRefused,
  kRefused,
};
inline constexpr std::size_t kPassedCount = 14;
inline constexpr std::array<const char*, kPassedCount> kPassedNames = {
    "managed memory ({api}MallocManaged)",
    "pitched memory ({api}MallocPitch, {api}Malloc3D)",
    "arrays ({api}MallocArray and its like)",
    "stream-ordered memory of a pool of the program's own",
    "stream-ordered memory for a stream of another context than the current one",
    "memory of a graph ({api}MallocAsync in a capture)",
    "{api}Malloc while a graph is captured",
    "{api}Malloc, all of it, because of --ipc",
    "pages that the program makes itself ({driver}MemCreate)",
    "memory of a kind of its own (hipExtMallocWithFlags)",
    "frees of pointers that are not Cistern's",
    "frees of what is no block of Cistern's, or not any more, refused",
    "requests to share Cistern's memory with another process, refused: see --ipc",
    "requests where Cistern had no allocator",
};

/// The driver's time for a cudaMalloc and its cudaFree of `bytes`, on this machine. It is counted
/// for cudaMallocs of up to `bytes` that are larger than the row before.
struct DriverPrice {
  std::uint64_t bytes = 0;
  std::atomic<std::uint64_t> nanoseconds{0};  ///< 0: not measured
};

struct Record {
  std::uint32_t version = kRecordVersion;
  std::uint32_t bytes = sizeof(Record);
  Identity process;
  std::array<char, 32> trace{};  ///< its trace's file in the same folder; empty: no trace
  std::array<char, 128> program{};
  std::array<char, 64> device{};
  std::array<char, 8> vendor{};  ///< "cuda" or "hip", whichever the program has loaded

  struct Calls {
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> ticks{0};  ///< in the hook; of a clock that `clock` says more of
  };
  /// The counters of one thread, so that it need share nothing. The total is the sum over the
  /// slots. A slot serves another thread when its own has ended.
  struct alignas(64) Slot {
    std::atomic<std::uint32_t> taken{0};
    std::array<Calls, kServedCount> served;
    std::array<std::atomic<std::uint64_t>, 3> priced{};  ///< cudaMallocs, by the rows of `prices`
    std::atomic<std::uint64_t> work{0};                  ///< submitted, as far as the hooks see it
    std::atomic<std::uint64_t> work_ended{0};            ///< whose call has returned
    std::atomic<std::uint64_t> unknown_work{0};  ///< calls of functions that may submit some
  };
  static constexpr std::size_t kSlots =
      128;  ///< the last one is for all threads that find no other
  std::array<Slot, kSlots> slots;
  /// The time when the record was begun, by that clock and by the steady one in ns. The reader of
  /// the record has the same clocks, and so can tell the length of a tick.
  struct Clock {
    std::uint64_t ticks = 0, nanoseconds = 0;
  } clock;
  std::array<std::atomic<std::uint64_t>, kPassedCount> passed{};
  std::array<DriverPrice, 3> prices;

  std::atomic<std::uint64_t> requested{0};  ///< bytes, as asked for and held
  std::atomic<std::uint64_t> requested_peak{0};
  std::atomic<std::uint64_t> reserved{0};  ///< bytes taken from the driver, the host's among them
  std::atomic<std::uint64_t> reserved_peak{0};
  std::atomic<std::uint64_t> host_reserved{0};  ///< those of the host's memory
  std::atomic<std::uint64_t> host_reserved_peak{0};
  std::array<char, 512> unknown_names{};   ///< functions that may submit work, as many as fit
  std::atomic<std::uint64_t> barriers{0};  ///< put between frees and the work after them
  std::atomic<std::uint64_t> fences{0};    ///< waited for instead, on the host's side
  std::atomic<std::uint64_t> out_of_memory{0};
  std::atomic<std::uint64_t> contexts{0};
  std::atomic<std::uint64_t> handles_given{0};   ///< of Cistern's memory, to other processes
  std::atomic<std::uint64_t> handles_opened{0};  ///< of other processes'
  std::atomic<std::uint64_t> trace_events{0};
  std::atomic<std::uint32_t> exited{0};  ///< it came to its exit handlers

  static constexpr std::array<std::uint64_t, 3> kPriced = {1 << 16, 4 << 20, 64 << 20};
  Record() {
    for (std::size_t i = 0; i < kPriced.size(); ++i) prices[i].bytes = kPriced[i];
  }
};

/// One event of the file of a trace: a trace as it is recorded, for `cistern run` to make one that
/// `cistern replay` reads. All zero: not written (the process was killed in between).
struct TraceRow {
  std::uint64_t value = 0;  ///< allocation: bytes; free: which allocation, from 0
  std::uint64_t stream = 0;
  std::uint64_t microseconds = 0;  ///< since the row before
  std::uint64_t kind = 0;          ///< 1: allocation, 2: free
};

// The clocks that a process counts with; the reader of its counts uses the same.

inline std::uint64_t nanosecondsNow() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/// A clock that costs next to nothing to look at; how long a tick is, the reader of the record
/// tells.
inline std::uint64_t ticksNow() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return nanosecondsNow();
#endif
}

}  // namespace cistern::preload
