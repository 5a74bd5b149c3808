#include "torch_pinned.hpp"

#include <cstring>

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include "errors.hpp"
#include "torch_allocator.hpp"

namespace cistern_torch {
namespace {

/// The deleter that a tensor's storage keeps.
void freePinned(void* block) { pinned().free(block); }

}  // namespace

TorchPinned& pinned() {
  static TorchPinned& one = *new TorchPinned;
  return one;
}

// One for all devices, whose memory it is alike. It is made for a device that the program uses
// already, so that none gets a context for it.
cistern::PinnedAllocator& TorchPinned::memory() {
  cistern::PinnedAllocator* there = memory_.load(std::memory_order_acquire);
  if (there != nullptr) return *there;
  const std::optional<DeviceIndex> used = c10::cuda::getDeviceIndexWithPrimaryContext();
  there = &cistern::pinnedAllocator(used ? *used : c10::cuda::current_device());
  cistern::PinnedAllocator* none = nullptr;
  return memory_.compare_exchange_strong(none, there) ? *there : *none;
}

c10::DeleterFnPtr TorchPinned::raw_deleter() const { return &freePinned; }

void* TorchPinned::take(std::size_t bytes, TorchPoolId pool) {
  const bool pooled = pool != TorchPoolId{0, 0};
  if (void* const again = pooled ? pools_.take(pool, bytes) : nullptr) return again;
  void* const made = memory().allocate(bytes);
  try {
    if (pooled) pools_.allocated(made, pool, bytes);
  } catch (...) {
    memory().free(made);
    throw;
  }
  return made;
}

c10::DataPtr TorchPinned::allocate(std::size_t bytes) {
  const bool told = bytes != 0 && listening();
  Context context = told ? history_.gather(theirs::RecordContext::STATE) : nullptr;
  void* const block = asTorch([&]() -> void* {
    if (bytes == 0) return nullptr;
    const TorchPoolId pool = pools_.now();
    void* const taken = take(bytes, pool);
    if (told) [[unlikely]] {
      history_.tellEndedUses(false);
      history_.allocated(
          {Action::ALLOC, std::size_t(taken), memory().blockSize(taken), nullptr, pool},
          std::move(context));
    }
    return taken;
  });
  return {block, block, &freePinned, c10::DeviceType::CPU};
}

void TorchPinned::free(void* block) noexcept {
  cistern::PinnedAllocator* const memory = memory_.load(std::memory_order_acquire);
  if (block == nullptr || memory == nullptr) return;
  if (listening()) [[unlikely]]
    history_.freed(block, history_.gather(theirs::RecordContext::ALL), false);
  if (!pools_.freed(block)) memory->free(block);
}

void TorchPinned::copy_data(void* to, const void* from, std::size_t bytes) const {
  std::memcpy(to, from, bytes);
}

bool TorchPinned::record_event(void* pointer, void* context, c10::Stream stream) {
  cistern::PinnedAllocator* const memory = memory_.load(std::memory_order_acquire);
  if (memory == nullptr) return false;
  void* const block = memory->isBlock(context) ? context : pointer;
  if (!memory->isBlock(block)) return false;
  pools_.used(block);
  const c10::cuda::CUDAStream used(c10::cuda::CUDAStream::UNCHECKED, stream);
  asTorch([&] {
    cistern::Device& device = installed()->at(used.device_index()).allocator.device();
    memory->recordStream(block, used.stream(), device);
    if (listening()) [[unlikely]]
      history_.used(block, used.stream(), device);
  });
  return true;
}

void TorchPinned::settle() {
  const auto synchronize = [] {
    bool rest = true;
    installed()->everywhere([&](DeviceState& state) {
      rest = state.allocator.device().synchronizeDevice().ok() && rest;
    });
    return rest;
  };
  pools_.settle(synchronize, [this](void* block) { memory().free(block); });
}

void TorchPinned::empty_cache() {
  cistern::PinnedAllocator* const memory = memory_.load(std::memory_order_acquire);
  if (memory == nullptr) return;
  settle();
  if (listening()) history_.tellEndedUses(false);
  asTorch([&] { memory->emptyCache(); });
}

at::HostStats TorchPinned::get_stats() {
  cistern::PinnedAllocator* const memory = memory_.load(std::memory_order_acquire);
  return hostStats(memory != nullptr ? memory->stats() : cistern::PinnedStats{});
}
void TorchPinned::reset_accumulated_stats() {
  cistern::PinnedAllocator* const memory = memory_.load(std::memory_order_acquire);
  if (memory != nullptr) memory->resetAccumulatedStats();
}
void TorchPinned::reset_peak_stats() {
  cistern::PinnedAllocator* const memory = memory_.load(std::memory_order_acquire);
  if (memory != nullptr) memory->resetPeakStats();
}

// ---- Graphs -------------------------------------------------------------------------------------

void TorchPinned::beginRegion(TorchPoolId pool, StreamFilter filter) {
  const auto catches = [filter = std::move(filter)] {
    return filter(c10::cuda::getCurrentCUDAStream().unwrap());
  };
  const auto captured = [stream = c10::cuda::getCurrentCUDAStream()] {
    const auto info =
        installed()->at(stream.device_index()).allocator.device().captureInfo(stream.stream());
    return !info.ok() || info.value().status != cistern::CaptureStatus::kNone;
  };
  asTorch([&] { pools_.begin(pool, catches, captured); });
}
void TorchPinned::endRegion(TorchPoolId pool) {
  asTorch([&] { pools_.end(pool); });
}
void TorchPinned::letGo(TorchPoolId pool) {
  asTorch([&] { pools_.release(pool); });
}

}  // namespace cistern_torch
