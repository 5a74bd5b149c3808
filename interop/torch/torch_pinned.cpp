#include "torch_pinned.hpp"

#include <cstring>
#include <utility>

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include "errors.hpp"
#include "torch_allocator.hpp"

namespace cistern_torch {
/// The deleter that a tensor's storage keeps.
static void freePinned(void* block) { pinned().free(block); }

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

// The history and the snapshot of pinned memory
// (torch.cuda.memory._record_memory_history(record_pinned_host_memory=True)).
//
// A piece of Cistern's stands for a segment of PyTorch's: that has one block. The history has the
// blocks' events. It has no event of a segment that the allocator pins or gives back.

void TorchPinned::setHistory(bool enabled, theirs::CreateContextFn gather, std::size_t most_entries,
                             theirs::RecordContext when, bool clear) {
  TORCH_CHECK(!enabled || when == theirs::RecordContext::NEVER || gather != nullptr,
              "cistern: record_history: stacks are asked for, but nothing that gathers them");
  history_.set({enabled, gather, most_entries, when, {}}, clear);
  if (!enabled || inChildOfFork()) return;
  std::vector<History::Living> living;
  for (const HostPiece& piece : pieces()) {
    if (piece.piece.use != cistern::BlockUse::kAllocated) continue;
    living.push_back({{Action::ALLOC, std::size_t(piece.piece.address),
                       std::size_t(piece.piece.bytes), nullptr, piece.pool}});
  }
  history_.noteLiving(living);
}

bool TorchPinned::untouched() const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && memory_.load() == nullptr && history_.unlocked();
}

std::vector<HostPiece> TorchPinned::pieces() {
  std::vector<HostPiece> pieces;
  cistern::PinnedAllocator* const memory = memory_.load(std::memory_order_acquire);
  const auto found =
      asTorch([&] { return memory == nullptr ? decltype(memory->pieces()){} : memory->pieces(); });
  for (cistern::PinnedPiece piece : found) {
    void* const block = cistern::toPointer(piece.address);
    const HostPools::Standing standing = pools_.standingOf(block);
    if (standing.kept) piece.use = cistern::BlockUse::kPending;
    const bool held = piece.use == cistern::BlockUse::kAllocated;
    pieces.push_back({piece, standing.pool, held ? history_.contextOf(block) : nullptr});
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [start, piece] : registered_) pieces.push_back(piece);
  return pieces;
}

// Times are as PyTorch's clock has them: nanoseconds become microseconds.
std::vector<theirs::TraceEntry> TorchPinned::events() {
  const auto nanoseconds = clock_.makeConverter();
  std::vector<theirs::TraceEntry> entries = history_.entries();
  for (auto& entry : entries) entry.time_.t_ = nanoseconds(entry.time_.approx_t_) / 1000;
  return entries;
}

void TorchPinned::pinnedByProgram(void* memory, std::size_t bytes) {
  if (!listening()) return;
  const Context context = history_.gather(theirs::RecordContext::STATE);
  {
    const std::lock_guard lock(mutex_);
    registered_[memory] = {
        {cistern::toAddress(memory), bytes, cistern::BlockUse::kAllocated}, {0, 0}, context};
  }
  history_.add({Action::SEGMENT_ALLOC, std::size_t(memory), bytes}, nullptr);
  history_.add({Action::ALLOC, std::size_t(memory), bytes}, context);
}

void TorchPinned::unpinnedByProgram(void* memory) {
  HostPiece piece;
  {
    const std::lock_guard lock(mutex_);
    const auto found = registered_.find(memory);
    if (found == registered_.end()) return;
    piece = found->second;
    registered_.erase(found);
  }
  if (!listening()) return;
  const auto bytes = std::size_t(piece.piece.bytes);
  history_.add({Action::FREE_REQUESTED, std::size_t(memory), bytes},
               history_.gather(theirs::RecordContext::ALL));
  history_.add({Action::FREE_COMPLETED, std::size_t(memory), bytes}, piece.context);
  history_.add({Action::SEGMENT_FREE, std::size_t(memory), bytes}, nullptr);
}

}  // namespace cistern_torch
