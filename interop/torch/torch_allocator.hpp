// PyTorch's CUDA allocator over Cistern: the whole of c10::cuda::CUDACachingAllocator's interface.
// A process has one object, made by install (install.cpp) and never destroyed, as tensors may be
// freed until its very end.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cistern/report.hpp"
#include "device_state.hpp"
#include "interop/sharing/shared_blocks.hpp"
#include "releases/device_interface.hpp"
#include "uncached.hpp"

namespace cistern_torch {

/// Thread-safe. Errors are torch.OutOfMemoryError, ValueError and RuntimeError, with Cistern's
/// text.
class TorchAllocator final : public VersionedAllocator {
 public:
  /// `chosen`: the name of the allocator that PyTorch's settings have chosen.
  explicit TorchAllocator(std::string chosen) : chosen_(std::move(chosen)) {}

  // ---- torch_memory.cpp ------------------------------------------------------------------------
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override;
  void* raw_alloc(std::size_t bytes) override;
  void* raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) override;
  void raw_delete(void* pointer) override;
  void recordStream(const c10::DataPtr& block, c10::cuda::CUDAStream stream) override;
  void enable(bool value) override;
  bool isEnabled() const override;

  // ---- states.cpp ------------------------------------------------------------------------------
  void init(int devices) override;
  bool initialized() override;
  double getMemoryFraction(DeviceIndex device) override;
  void setMemoryFraction(double fraction, DeviceIndex device) override;
  void cacheInfo(DeviceIndex device, std::size_t* largest_block) override;
  void* getBaseAllocation(void* pointer, std::size_t* bytes) override;
  void emptyCache(TorchPoolId pool = {0, 0}) override;
  std::string name() override;

  // ---- torch_statistics.cpp --------------------------------------------------------------------
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device) override;
  void resetAccumulatedStats(DeviceIndex device) override;
  void resetPeakStats(DeviceIndex device) override;

  // ---- torch_reports.cpp -----------------------------------------------------------------------
  theirs::SnapshotInfo takeSnapshot(TorchPoolId pool, bool include_traces) override;
  bool isHistoryEnabled() override;
  void setHistory(bool enabled, theirs::CreateContextFn gather, std::size_t most_entries,
                  theirs::RecordContext when, bool clear,
                  const std::vector<std::string>& skipped_actions) override;
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& pairs) override;
  void pushCompileContext(std::string& context) override;
  void popCompileContext() override;
  void setMetadata(const std::string& metadata) override;
  std::string metadata() override;
  void annotate(void* block, const std::string& text) override;
  Context contextOf(void* block) override;
  void attachOutOfMemoryObserver(theirs::OutOfMemoryObserver observer) override;
  void attachRejectionObserver(RejectionObserver observer) override;
  void attachAllocatorTraceTracker(theirs::AllocatorTraceTracker tracker) override;

  // ---- pool_verbs.cpp --------------------------------------------------------------------------
  void beginAllocateToPool(DeviceIndex device, TorchPoolId pool, Filter filter) override;
  void endAllocateToPool(DeviceIndex device, TorchPoolId pool) override;
  void releasePool(DeviceIndex device, TorchPoolId pool) override;
  int getPoolUseCount(DeviceIndex device, TorchPoolId pool) override;
  void countPool(DeviceIndex device, TorchPoolId pool, CustomAllocator source) override;
  void setLends(DeviceIndex device, TorchPoolId pool, bool lends) override;
  void setSplits(DeviceIndex device, TorchPoolId pool) override;
  bool checkPoolLiveAllocations(DeviceIndex device, TorchPoolId pool,
                                const std::unordered_set<void*>& expected) override;
  std::shared_ptr<theirs::AllocatorState> getCheckpointState(DeviceIndex device,
                                                             TorchPoolId pool) override;
  theirs::CheckpointDelta setCheckpointPoolState(
      DeviceIndex device, std::shared_ptr<theirs::AllocatorState> state) override;

  // ---- torch_sharing.cpp -----------------------------------------------------------------------
  theirs::ShareableHandle shareIpcHandle(void* pointer) override;
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override;
  void enablePeerAccess(DeviceIndex device, DeviceIndex peer) override;
  cudaError_t memcpyAsync(void* to, int to_device, const void* from, int from_device,
                          std::size_t bytes, cudaStream_t stream, bool peer_access) override;

  /// Whether no device was used, and no other thread is inside. Waits for no lock.
  bool untouched() const;
  /// Frees a block, for a tensor that ends. Any other pointer is reported as cistern::free does.
  void giveBack(void* pointer);
  /// The device's state, made when first asked for.
  DeviceState& at(DeviceIndex device);
  /// Null where nothing was asked of that device yet.
  DeviceState* find(DeviceIndex device) const;
  /// A device whose state is made from now on may have so many bytes in host memory when it is
  /// full.
  void setOverflow(std::uint64_t host_bytes) { overflow_.store(host_bytes); }
  /// What frees memory of a device that is short of it; see exports.cpp.
  using WhenShort = int (*)(int device);
  void setWhenShort(WhenShort call) { when_short_.store(call); }
  /// The state of the device that the block lies on; null for no block of ours.
  DeviceState* ownerOf(void* pointer) const;
  template <class Verb>
  void everywhere(Verb verb) {
    for (std::size_t i = 0; i < kMost; ++i) {
      if (DeviceState* const state = find(DeviceIndex(i))) verb(*state);
    }
  }

 private:
  static constexpr std::size_t kMost = 64;  ///< devices, as cistern::DeviceGuard has them

  void* take(std::size_t bytes, DeviceIndex device, cudaStream_t stream);
  void* takeListening(DeviceState& state, std::size_t bytes, cudaStream_t stream);
  void tellProfiler(DeviceState& state, void* pointer, std::int64_t bytes);
  DeviceState& make(DeviceIndex device);
  void followHistory(DeviceState& state);
  /// Sets listening_. Pre: mutex_ is held.
  void followFrees();
  void outOfMemory(DeviceState& state, const cistern::OutOfMemoryReport& report);
  void rejected(DeviceState& state, const cistern::OutOfMemoryReport& report);

  const std::string chosen_;
  std::array<std::atomic<DeviceState*>, kMost> states_{};
  std::atomic<int> devices_{-1};     ///< -1: not initialised
  std::atomic<double> fraction_{1};  ///< of each device's memory, by the settings when initialised
  std::atomic<std::uint64_t> overflow_{0};  ///< of each device; 0: as its own options say
  std::atomic<WhenShort> when_short_{nullptr};
  /// Frees are told: someone records, has attached a tracker, or blocks have stacks.
  std::atomic<bool> listening_{false};
  mutable std::mutex mutex_;  ///< of what stands below, and of making a state
  HistorySettings history_;
  std::vector<theirs::OutOfMemoryObserver> out_of_memory_observers_;
  std::vector<RejectionObserver> rejection_observers_;
  std::vector<theirs::AllocatorTraceTracker> trackers_;
  std::vector<Annotation> annotations_;
  c10::ApproximateClockToUnixTimeConverter clock_;
  Uncached uncached_;
  cistern::sharing::SharedBlocks& shared_ = cistern::sharing::SharedBlocks::theOne();
};

/// The process's own; null before it is installed.
TorchAllocator* installed();
void setInstalled(TorchAllocator* allocator);

}  // namespace cistern_torch
