// What `cistern run` tells the library that it preloads, by the environment.
#pragma once

namespace cistern::preload {

// Names in the environment.
inline constexpr char kRunFolder[] = "CISTERN_RUN_FOLDER";    ///< where records go; unset: none
inline constexpr char kRunProcess[] = "CISTERN_RUN_PROCESS";  ///< the pid to serve; unset: any
inline constexpr char kRunTrace[] = "CISTERN_RUN_TRACE";      ///< set: record a trace
inline constexpr char kRunIpc[] = "CISTERN_RUN_IPC";          ///< set: cudaMalloc is the driver's
inline constexpr char kRunStrict[] = "CISTERN_RUN_STRICT";    ///< set: see docs/run.md

/// Whether this process is to be served: it is the one that was started, or all are.
bool active() noexcept;
bool passesForIpc() noexcept;
/// Memory that was freed is handed out again only when the work that used it is complete.
bool asksForCompletion() noexcept;

}  // namespace cistern::preload
