// PyTorch's interface of a CUDA allocator, as the newest release has it.
//
// It is a C++ class whose virtual functions change with each release. VersionedAllocator overrides
// each function that has changed. It passes the call on under a name of our own, with the arguments
// of the newest release. A function that older releases lack is never called there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "torch_release.hpp"

namespace cistern_torch {

#if CISTERN_TORCH >= 211
using CustomAllocator = std::shared_ptr<theirs::CUDAAllocator>;
#else
using CustomAllocator = theirs::CUDAAllocator*;
#endif

/// Told of a request that the process's limit refused: the device, the bytes asked for, the bytes
/// allocated before, the device's memory.
using RejectionObserver = std::function<void(std::int64_t, std::size_t, std::size_t, std::size_t)>;

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
  virtual void annotate(void* block, const std::string& text) = 0;
  virtual std::shared_ptr<c10::GatheredContext> contextOf(void* block) = 0;
  virtual void attachRejectionObserver(RejectionObserver observer) = 0;

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

#if CISTERN_TORCH >= 212
  std::shared_ptr<c10::GatheredContext> getContextForPointer(const void* block) final {
    return contextOf(const_cast<void*>(block));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }
  void attachOomRejectionObserver(theirs::OomRejectionObserver observer) final {
    attachRejectionObserver(std::move(observer));
  }
#endif

  // 2.13 has markCaptureBegin and markCaptureEnd too. They stay PyTorch's, which do nothing: the
  // device itself says which streams are being captured, also after a capture that has failed.

#if CISTERN_TORCH >= 214
  bool supportsUserMetadata() final { return true; }
  void annotateMemory(const void* block, const std::string& text) final {
    annotate(const_cast<void*>(block), text);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  }
#endif
};

}  // namespace cistern_torch
