// Every kind of call that the engine can make to a device: counted, priced on the simulated one,
// and the unit in which faults are planned.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cistern {

enum class Call : std::uint8_t {
  kMalloc,
  kFree,
  kMemoryInfo,
  kReserve,
  kFreeReservation,
  kCreatePage,
  kReleasePage,
  kMap,
  kSetAccess,
  kUnmap,
  kCreateStream,
  kDestroyStream,
  kWaitEvent,
  kQueryStream,
  kSynchronizeStream,
  kCreateEvent,
  kDestroyEvent,
  kRecordEvent,
  kQueryEvent,
  kSynchronizeEvent,
  kSynchronizeDevice,
  kCaptureInfo,
  kCaptureFrontier,
  kNodeDependencies,
  kExchangeCaptureMode,
  kBeginCapture,
  kEndCapture,
  kInstantiate,
  kLaunchGraph,
  kDestroyGraph,
  kDestroyGraphExec,
  kDumpGraph,
  kHostMalloc,
  kHostFree,
  kCanAccessPeer,
  kMallocAsync,
  kFreeAsync,
  kDriverPool,
  kOpen,  ///< finding and opening a device: in errors only, before there is one to count on
  kCount,
};

inline constexpr std::size_t kCallCount = std::size_t(Call::kCount);

/// The call's name in reports and JSON: "malloc", "create_page", …; static storage.
std::string_view callName(Call call);

}  // namespace cistern
