// The settings that `cistern run` passes, by the environment, to the library that it preloads.
#pragma once

#include <atomic>
#include <cstdint>

namespace cistern::preload {

// Names in the environment.
inline constexpr char kRunFolder[] = "CISTERN_RUN_FOLDER";        ///< where records go; unset: none
inline constexpr char kRunProcess[] = "CISTERN_RUN_PROCESS";      ///< the pid to serve; unset: any
inline constexpr char kRunNamespace[] = "CISTERN_RUN_NAMESPACE";  ///< whose number it is: its inode
inline constexpr char kRunTrace[] = "CISTERN_RUN_TRACE";          ///< set: record a trace
inline constexpr char kRunArguments[] = "CISTERN_RUN_ARGUMENTS";  ///< set: name programs with them
inline constexpr char kRunIpc[] = "CISTERN_RUN_IPC";        ///< set: cudaMalloc is the driver's
inline constexpr char kRunStrict[] = "CISTERN_RUN_STRICT";  ///< set: see docs/run.md
/// `events` or `stacks`: record histories; unset: none
inline constexpr char kRunHistory[] = "CISTERN_RUN_HISTORY";
inline constexpr char kHistoryPrefix[] = "history_";  ///< of their files in the folder

namespace detail {
inline constinit std::atomic<bool> serves_here{false};
inline constinit std::atomic<bool> ipc{false};
inline constinit std::atomic<bool> strict{false};
}  // namespace detail

/// The contents of the allocators' histories.
enum class RunHistory : std::uint8_t { kNone, kEvents, kStacks };
RunHistory historyAtStart() noexcept;
/// The folder for the files of the run; "" if there is none.
const char* folderAtStart() noexcept;
/// What CISTERN_BACKEND named when the process started; "" if it was not set.
const char* backendAtStart() noexcept;

/// Whether this process is to be served: it is the one that was started, or all are.
inline bool active() noexcept { return detail::serves_here.load(std::memory_order_relaxed); }
inline bool passesForIpc() noexcept { return detail::ipc.load(std::memory_order_relaxed); }
/// Memory that was freed is handed out again only when the work that used it is complete.
inline bool asksForCompletion() noexcept { return detail::strict.load(std::memory_order_relaxed); }

}  // namespace cistern::preload
