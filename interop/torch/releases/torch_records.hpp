// The records that PyTorch's reports consist of: events, statistics, descriptions of segments.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/CachingHostAllocator.h>
#include <c10/util/ApproximateClock.h>

#include "cistern/pinned.hpp"
#include "torch_release.hpp"

namespace cistern_torch {

using Action = theirs::TraceEntry::Action;
using Annotation = decltype(theirs::SnapshotInfo::external_annotations)::value_type;

/// A note on a block. Before 2.14 nothing makes one.
#if CISTERN_TORCH >= 214
inline constexpr Action kAnnotate = Action::ANNOTATE;
#else
inline constexpr Action kAnnotate = Action::SNAPSHOT;
#endif

/// As _record_memory_history(skip_actions=…) spells it.
inline const char* nameOf(Action action) {
  switch (action) {
    case Action::ALLOC:
      return "alloc";
    case Action::FREE_REQUESTED:
      return "free_requested";
    case Action::FREE_COMPLETED:
      return "free_completed";
    case Action::SEGMENT_ALLOC:
      return "segment_alloc";
    case Action::SEGMENT_FREE:
      return "segment_free";
    case Action::SEGMENT_MAP:
      return "segment_map";
    case Action::SEGMENT_UNMAP:
      return "segment_unmap";
    case Action::SNAPSHOT:
      return "snapshot";
    case Action::OOM:
      return "oom";
#if CISTERN_TORCH >= 214
    case Action::ANNOTATE:
      return "annotate";
#endif
  }
  return "";
}

/// Throws RuntimeError where PyTorch's release has no event of that name. Before 2.11 none is
/// skipped.
inline void checkActionName([[maybe_unused]] const std::string& name) {
#if CISTERN_TORCH >= 211
  (void)c10::CachingDeviceAllocator::parseTraceEntryAction(name);
#endif
}

/// An event, with the stack and the texts of the thread that made it happen.
struct EventRecord {
  Action action;
  DeviceIndex device = 0;  ///< -1: the host
  std::size_t address = 0;
  std::size_t bytes = 0;
  cudaStream_t stream = nullptr;
  TorchPoolId pool{0, 0};
  std::shared_ptr<c10::GatheredContext> context;
  std::string compile_context;
  std::string user_metadata;  ///< since 2.10
};

/// The entry of a trace for an event that happens now.
inline theirs::TraceEntry traceEntry(EventRecord event) {
#if CISTERN_TORCH >= 210
  return theirs::TraceEntry(event.action, event.device, event.address, event.bytes, event.stream,
                            event.pool, c10::getApproximateTime(), std::move(event.context),
                            std::move(event.compile_context), std::move(event.user_metadata));
#else
  return theirs::TraceEntry(event.action, event.device, event.address, event.bytes, event.stream,
                            event.pool, c10::getApproximateTime(), std::move(event.context),
                            std::move(event.compile_context));
#endif
}

/// The number of a segment: they rise in the order in which segments came. Since 2.11.
template <class Segment>
void setOrder([[maybe_unused]] Segment& segment, [[maybe_unused]] std::uint64_t number) {
  if constexpr (requires { segment.registration_counter; })
    segment.registration_counter = decltype(segment.registration_counter)(number);
}

inline c10::CachingAllocator::Stat statOf(const cistern::StatValue& value) {
  c10::CachingAllocator::Stat stat;
  stat.current = value.current;
  stat.peak = value.peak;
  stat.allocated = value.allocated;
  stat.freed = value.freed;
  return stat;
}

/// Whether statistics have what each pool has reserved. Since 2.13.
inline constexpr bool kPoolFigures = CISTERN_TORCH >= 213;
/// Small and large requests are not told apart.
inline void addPool([[maybe_unused]] c10::CachingDeviceAllocator::DeviceStats& stats,
                    [[maybe_unused]] TorchPoolId pool,
                    [[maybe_unused]] const cistern::StatValue& reserved) {
#if CISTERN_TORCH >= 213
  stats.reserved_bytes_by_private_pools[pool][0] = statOf(reserved);
#endif
}

/// The count of requests that the process's limit refused. Since 2.12.
inline void setRejections([[maybe_unused]] c10::CachingDeviceAllocator::DeviceStats& stats,
                          [[maybe_unused]] std::int64_t count) {
#if CISTERN_TORCH >= 212
  stats.num_oom_rejections = count;
#endif
}

/// The figures of pinned memory, by the names that each release has. Times are not taken.
inline at::HostStats hostStats(const cistern::PinnedStats& now) {
  at::HostStats stats;
#if CISTERN_TORCH >= 210
  stats.active_requests = statOf(now.active);
  stats.active_bytes = statOf(now.active_bytes);
  stats.allocations = statOf(now.segment);
  stats.allocated_bytes = statOf(now.reserved_bytes);
#else
  stats.allocation = statOf(now.allocation);
  stats.segment = statOf(now.segment);
  stats.allocated_bytes = statOf(now.allocated_bytes);
  stats.reserved_bytes = statOf(now.reserved_bytes);
#endif
  stats.num_host_alloc = std::int64_t(now.num_host_alloc);
  stats.num_host_free = std::int64_t(now.num_host_free);
  return stats;
}

}  // namespace cistern_torch
