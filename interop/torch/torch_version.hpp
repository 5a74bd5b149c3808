// The differences between the releases of PyTorch that this is built against, 2.9 to 2.11. No code
// outside this header asks which release it is.
//
// PyTorch's allocator interface is a C++ class whose virtual functions change with each release.
// This header overrides each function that has changed. It passes the call on under a name of our
// own, with the arguments of the newest release.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/CachingHostAllocator.h>
#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/util/ApproximateClock.h>
#include <torch/version.h>

#include "cistern/pinned.hpp"
#include "torch_pools.hpp"

/// 211 for 2.11.
#define CISTERN_TORCH (100 * TORCH_VERSION_MAJOR + TORCH_VERSION_MINOR)
#if CISTERN_TORCH < 209
#error "cistern.torch is built against PyTorch 2.9 and later"
#endif

namespace cistern_torch {

static_assert(std::is_same_v<TorchPoolId, c10::MempoolId_t>);

namespace theirs = c10::cuda::CUDACachingAllocator;
using c10::DeviceIndex;
using Annotation = decltype(theirs::SnapshotInfo::external_annotations)::value_type;

#if CISTERN_TORCH >= 211
using CustomAllocator = std::shared_ptr<theirs::CUDAAllocator>;
#else
using CustomAllocator = theirs::CUDAAllocator*;
#endif

/// The part of a device's memory that PYTORCH_ALLOC_CONF lets this process take; 1 where it says
/// nothing, and before 2.10, where it cannot.
inline double fractionOfSettings() {
#if CISTERN_TORCH >= 210
  return theirs::CUDAAllocatorConfig::per_process_memory_fraction();
#else
  return 1;
#endif
}

/// A trace entry, in the order of arguments that each release has.
inline theirs::TraceEntry traceEntry(theirs::TraceEntry::Action action, DeviceIndex device,
                                     std::size_t address, std::size_t bytes, cudaStream_t stream,
                                     TorchPoolId pool,
                                     std::shared_ptr<c10::GatheredContext> context,
                                     std::string compile_context, std::string user_metadata) {
#if CISTERN_TORCH >= 210
  return theirs::TraceEntry(action, device, address, bytes, stream, pool, c10::getApproximateTime(),
                            std::move(context), std::move(compile_context),
                            std::move(user_metadata));
#else
  (void)user_metadata;
  return theirs::TraceEntry(action, device, address, bytes, stream, pool, c10::getApproximateTime(),
                            std::move(context), std::move(compile_context));
#endif
}

inline c10::CachingAllocator::Stat statOf(const cistern::StatValue& value) {
  c10::CachingAllocator::Stat stat;
  stat.current = value.current;
  stat.peak = value.peak;
  stat.allocated = value.allocated;
  stat.freed = value.freed;
  return stat;
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

/// Which streams a region of pinned memory catches.
using StreamFilter = std::function<bool(c10::Stream)>;

/// The interface of pinned memory, as the newest release has it. Before 2.11 a graph has no pinned
/// memory of its own: there are no regions then.
class VersionedHostAllocator : public at::HostAllocator {
 public:
  virtual void beginRegion(TorchPoolId pool, StreamFilter filter) = 0;
  virtual void endRegion(TorchPoolId pool) = 0;
  virtual void letGo(TorchPoolId pool) = 0;

#if CISTERN_TORCH >= 211
  void begin_allocate_to_pool(TorchPoolId pool, StreamFilter filter) final {
    beginRegion(pool, std::move(filter));
  }
  void end_allocate_to_pool(TorchPoolId pool) final { endRegion(pool); }
  void release_pool(TorchPoolId pool) final { letGo(pool); }
#endif
};

/// The interface, as the newest release has it.
class VersionedAllocator : public theirs::CUDAAllocator {
 public:
  virtual theirs::SnapshotInfo takeSnapshot(TorchPoolId pool, bool include_traces) = 0;
  virtual void setHistory(bool enabled, theirs::CreateContextFn gather, std::size_t most_entries,
                          theirs::RecordContext when, bool clear,
                          const std::vector<std::string>& skipped_actions) = 0;
  virtual void countPool(DeviceIndex device, TorchPoolId pool, CustomAllocator source) = 0;
  virtual void setLends(DeviceIndex device, TorchPoolId pool, bool lends) = 0;
  virtual void setSplits(DeviceIndex device, TorchPoolId pool) = 0;
  virtual void setMetadata(const std::string& metadata) = 0;
  virtual std::string metadata() = 0;

  void createOrIncrefPool(DeviceIndex device, TorchPoolId pool,
                          CustomAllocator source = nullptr) final {
    countPool(device, pool, std::move(source));
  }

#if CISTERN_TORCH >= 211
  theirs::SnapshotInfo snapshot(TorchPoolId pool = {0, 0}, bool include_traces = true) final {
    return takeSnapshot(pool, include_traces);
  }
  void recordHistory(bool enabled, theirs::CreateContextFn gather, std::size_t most_entries,
                     theirs::RecordContext when, bool clear,
                     const std::vector<std::string>& skipped_actions) final {
    setHistory(enabled, gather, most_entries, when, clear, skipped_actions);
  }
  void setUseOnOOM(DeviceIndex device, TorchPoolId pool, bool lends) final {
    setLends(device, pool, lends);
  }
#else
  theirs::SnapshotInfo snapshot(TorchPoolId pool = {0, 0}) final {
    return takeSnapshot(pool, true);
  }
  void recordHistory(bool enabled, theirs::CreateContextFn gather, std::size_t most_entries,
                     theirs::RecordContext when, bool clear) final {
    setHistory(enabled, gather, most_entries, when, clear, {});
  }
  void setUseOnOOM(DeviceIndex device, TorchPoolId pool) final { setLends(device, pool, true); }
#endif

#if CISTERN_TORCH >= 210
  void setNoSplit(DeviceIndex device, TorchPoolId pool) final { setSplits(device, pool); }
  void setUserMetadata(const std::string& text) final { setMetadata(text); }
  std::string getUserMetadata() final { return metadata(); }
  /// There are none: memory in pages needs no segments that grow.
  std::vector<theirs::StreamSegmentSize> getExpandableSegmentSizes(DeviceIndex) final { return {}; }
#endif
};

}  // namespace cistern_torch
