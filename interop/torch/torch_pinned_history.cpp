// The history and the snapshot of pinned memory
// (torch.cuda.memory._record_memory_history(record_pinned_host_memory=True)).
//
// A piece of Cistern's stands for a segment of PyTorch's: that has one block. The history has the
// blocks' events. It has no event of a segment that the allocator pins or gives back.
#include <utility>

#include "errors.hpp"
#include "torch_pinned.hpp"

namespace cistern_torch {

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
