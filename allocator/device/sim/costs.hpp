// The host's cost of each device call on the simulated device, in nanoseconds. The figures are fits
// to the times of an NVIDIA H200 (driver 580, CUDA 13.0); the measured points stand beside each.
// Calls that were not measured are marked so, and borrow from their nearest relative.
//
// Calls that map pages cost two to five times as much in a program that runs kernels as they cost
// alone: the driver's work for both shares locks. The part of a page that does not grow with its
// size was measured in a training step; the rest, and the points below, in calls alone.
#pragma once

#include <cstdint>

#include "allocator/base/bytes.hpp"

namespace cistern::sim::cost {

using Nanoseconds = std::uint64_t;

/// `per_mib` ns for each MiB, in integers so that every run agrees to the nanosecond.
constexpr Nanoseconds perMib(std::uint64_t bytes, Nanoseconds per_mib) {
  return bytes / 1024 * per_mib / 1024;
}

// cudaMalloc + cudaFree: 55 us at 2 MiB, 62 at 20 MiB, 446 at 1 GiB. Half is given to each.
constexpr Nanoseconds malloc(std::uint64_t bytes) { return 27'117 + perMib(bytes, 191); }
constexpr Nanoseconds free(std::uint64_t bytes) { return 27'117 + perMib(bytes, 191); }
inline constexpr Nanoseconds kMemoryInfo = 3'900;  // cudaMemGetInfo: 3.9 us

// cuMemCreate: 9 us at 2 MiB, 8 at 20 and 32 MiB, 15 at 256 MiB, 30 at 1 GiB. In a step: 50.
constexpr Nanoseconds createPage(std::uint64_t bytes) { return 49'960 + perMib(bytes, 21); }
// cuMemRelease: 9 us at 2 MiB, 17 at 20 MiB, 19 at 32 MiB, 75 at 256 MiB, 253 at 1 GiB.
// In a step: 27.
constexpr Nanoseconds releasePage(std::uint64_t bytes) { return 26'523 + perMib(bytes, 239); }
// cuMemMap: 0.5 to 0.8 us, whatever the size. In a step: 3.3.
inline constexpr Nanoseconds kMap = 3'300;
// cuMemSetAccess, one call: 20 us for one page of 2 MiB, 2,727 for 128 of them. 348 us for 16 of 32
// MiB, 36 for one of 256 MiB, 57 for one of 1 GiB. In a step: 43 a page.
constexpr Nanoseconds setAccess(std::uint64_t pages, std::uint64_t bytes) {
  return pages * 43'000 + perMib(bytes, 35);
}
// cuMemUnmap, one call: 14 us for one page of 2 MiB, 1,795 for 128 of them. 222 us for 16 of 32
// MiB, 21 for one of 256 MiB, 29 for one of 1 GiB. In a step: 39 a page.
constexpr Nanoseconds unmap(std::uint64_t pages, std::uint64_t bytes) {
  return pages * 39'000 + perMib(bytes, 15);
}
// Pages of host memory of 32 MiB (an H200): create 27 us, map 8, access 761, unmap 148, release
// 580. Other sizes were not measured: the part that does not grow with the size is a device page's.
constexpr Nanoseconds createHostPage(std::uint64_t bytes) { return 8'960 + perMib(bytes, 564); }
constexpr Nanoseconds releaseHostPage(std::uint64_t bytes) { return 8'523 + perMib(bytes, 17'859); }
inline constexpr Nanoseconds kMapHost = 8'000;
/// More than setAccess and unmap take for the same bytes of the device's memory.
constexpr Nanoseconds moreAccess(std::uint64_t host) { return perMib(host, 22'403); }
constexpr Nanoseconds moreUnmap(std::uint64_t host) { return perMib(host, 3'391); }
// A kernel that reads and writes host pages gets 82 GB/s of both together (an H200).
constexpr Nanoseconds overTheBus(std::uint64_t bytes) { return bytes / 82; }

// Not measured: address bookkeeping only, as a map is.
inline constexpr Nanoseconds kReserve = kMap;
inline constexpr Nanoseconds kFreeReservation = kMap;

// Not measured: a descriptor is priced as the creation of a page of 2 MiB.
inline constexpr Nanoseconds kExportPage = createPage(2 * kMiB);
inline constexpr Nanoseconds kImportPage = createPage(2 * kMiB);

inline constexpr Nanoseconds kRecordEvent = 152;  // cudaEventRecord
inline constexpr Nanoseconds kQueryEvent = 133;   // cudaEventQuery
inline constexpr Nanoseconds kWaitEvent = 123;    // cudaStreamWaitEvent
inline constexpr Nanoseconds kCreateEvent = 90;   // cudaEventCreate + Destroy: 180
inline constexpr Nanoseconds kDestroyEvent = 90;
inline constexpr Nanoseconds kCaptureInfo = 48;  // cudaStreamIsCapturing
inline constexpr Nanoseconds kLaunch = 4'200;    // a kernel launch: 4.2 us in the median

// Not measured: a copy is queued as a kernel is, and runs at 2 TB/s, half of what the memory can
// do.
inline constexpr Nanoseconds kCopy = kLaunch;
constexpr Nanoseconds copying(std::uint64_t bytes) { return 1'000 + bytes / 2'000; }

// A copy over the bus: 55.3 GB/s to pinned memory, 51.1 back; the slower of the two for both. Each
// of 4,141 in one call took half a microsecond more than its share of one copy (an H100).
constexpr Nanoseconds busCopying(std::uint64_t bytes) { return 500 + bytes / 51; }

// Not measured. A query or a wait of a stream is priced as one of an event, before any waiting.
inline constexpr Nanoseconds kQueryStream = kQueryEvent;
inline constexpr Nanoseconds kSynchronize = kQueryEvent;
// Not measured: the order of magnitude of a page's creation, and of a launch.
inline constexpr Nanoseconds kCreateStream = 9'000;
inline constexpr Nanoseconds kDestroyStream = 9'000;
inline constexpr Nanoseconds kBeginCapture = kLaunch;
inline constexpr Nanoseconds kEndCapture = kLaunch;
inline constexpr Nanoseconds kInstantiate = 9'000;
inline constexpr Nanoseconds kLaunchGraph = kLaunch;
inline constexpr Nanoseconds kDestroyGraph = kLaunch;
// Not measured. A look into a capture is priced as a query for one. Drawing a graph is priced as a
// launch, without the cost of the file.
inline constexpr Nanoseconds kCaptureFrontier = kCaptureInfo;
inline constexpr Nanoseconds kNodeDependencies = kCaptureInfo;
inline constexpr Nanoseconds kDumpGraph = kLaunch;
// Not measured: reading or writing one thread-local word, as cudaGetDevice does in 27 ns.
inline constexpr Nanoseconds kExchangeCaptureMode = 27;
inline constexpr Nanoseconds kCanAccessPeer = 27;
inline constexpr Nanoseconds kDriverPool = 27;
// Not measured: once in a program's life, so the cost does not matter.
inline constexpr Nanoseconds kAdmitPeer = 9'000;

}  // namespace cistern::sim::cost
