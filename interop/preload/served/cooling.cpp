#include "interop/preload/served/cooling.hpp"

#include <algorithm>
#include <utility>

#include "interop/preload/record/ledger.hpp"

namespace cistern::preload::GPU_NAMESPACE {

void Cooling::add(const Cooled& block) {
  const MutexLock lock(mutex_);
  open_.push_back(block);
  any_.store(true, std::memory_order_relaxed);
}

void Cooling::addAfter(const Cooled& block, StreamHandle stream) {
  EventHandle event = nullptr;
  Code result = driver_.createEvent(&event);
  if (result == kSuccess) result = driver_.recordEvent(event, stream);
  if (result != kSuccess) {
    if (event != nullptr) (void)driver_.destroyEvent(event);
    return add(block);
  }
  const MutexLock lock(mutex_);
  batches_.push_back({{event}, {block}, {}});
  any_.store(true, std::memory_order_relaxed);
}

void Cooling::keep(std::vector<Cooled> blocks) {
  const MutexLock lock(mutex_);
  open_.insert(open_.end(), blocks.begin(), blocks.end());
}

// The blocks that may be reused at once; none while a capture is under way, or if the barrier
// fails.
std::vector<Cooled> Cooling::orderOpen(std::vector<Cooled> blocks) {
  const MutexLock lock(captures_.beginning());
  const bool captured = captures_.maybe() && order_.capturing();
  if (captured || order_.barrier() != kSuccess) {
    keep(std::move(blocks));
    return {};
  }
  return blocks;
}

// The events of a batch before which as much work was submitted are good for these blocks too.
bool Cooling::join(std::uint64_t work, const std::vector<Cooled>& blocks) {
  const MutexLock lock(mutex_);
  for (Batch& batch : batches_) {
    if (batch.work != work) continue;
    batch.blocks.insert(batch.blocks.end(), blocks.begin(), blocks.end());
    return true;
  }
  return false;
}

void Cooling::waited(std::uint64_t work) noexcept {
  std::uint64_t before = complete_;
  while (before < work && !complete_.compare_exchange_weak(before, work)) {
  }
}

// The work that the program has submitted before it freed a block is counted by now.
std::vector<Cooled> Cooling::fenceOpen(std::vector<Cooled> blocks) {
  const MutexLock lock(captures_.beginning());
  const std::optional<std::uint64_t> work = ContextOrder::workSoFar();
  Batch batch{{}, {}, work};
  const bool captured = captures_.maybe() && order_.capturing();
  if (!captured && work) {
    if (*work == complete_) return blocks;
    if (join(*work, blocks)) return {};
  }
  if (captured || order_.fence(batch.events) != kSuccess) {
    for (EventHandle event : batch.events) (void)driver_.destroyEvent(event);
    keep(std::move(blocks));
    return {};
  }
  preload::add(record().fences);
  batch.blocks = std::move(blocks);
  const MutexLock changing(mutex_);
  batches_.push_back(std::move(batch));
  return {};
}

bool Cooling::hasPassed(Batch& batch, Ask ask) {
  while (!batch.events.empty()) {
    if ((driver_.*ask)(batch.events.back()) != kSuccess) return false;
    (void)driver_.destroyEvent(batch.events.back());
    batch.events.pop_back();
  }
  return true;
}

// Batches are looked at outside of the lock, one thread each.
std::vector<Cooled> Cooling::passedBatches(Ask ask) {
  std::vector<Batch> looked_at;
  {
    const MutexLock lock(mutex_);
    looked_at.swap(batches_);
  }
  std::vector<Cooled> passed;
  std::vector<Batch> left;
  for (Batch& batch : looked_at) {
    if (!hasPassed(batch, ask)) {
      left.push_back(std::move(batch));
      continue;
    }
    passed.insert(passed.end(), batch.blocks.begin(), batch.blocks.end());
    if (batch.work) waited(*batch.work);
  }
  const MutexLock lock(mutex_);
  for (Batch& batch : left) batches_.push_back(std::move(batch));
  any_.store(!open_.empty() || !batches_.empty(), std::memory_order_relaxed);
  return passed;
}

// The block of a stream goes back to that stream. The stream's progress says when the block is
// complete, and says nothing of the work of other streams on it. The hub's progress covers
// everything before the cut.
void Cooling::give(CachingAllocator& allocator, const Cooled& block) noexcept {
  if (block.of_stream && reuse_ == Reuse::kInOrder) {
    StreamHandle hub = nullptr;
    try {
      if (order_.reach(hub) != kSuccess) return add(block);
      allocator.recordStream(block.pointer, Stream(hub));
    } catch (const std::exception&) {  // it is tried again when memory is asked for
      return add(block);
    }
  }
  allocator.free(block.pointer);
}

bool Cooling::giveAll(CachingAllocator& allocator, const std::vector<Cooled>& blocks) noexcept {
  for (const Cooled& block : blocks) give(allocator, block);
  given_.fetch_add(blocks.size());
  return !blocks.empty();
}

// If another thread is settling, this thread goes on without: the other's memory will go to the
// allocator.
bool Cooling::settle(CachingAllocator& allocator) {
  if (!any_.load(std::memory_order_relaxed)) return false;
  if (!settling_.try_lock()) return false;
  const MutexUnlock unlock(settling_);
  return settleAlone(allocator);
}

bool Cooling::settleAlone(CachingAllocator& allocator) {
  std::vector<Cooled> open;
  {
    const MutexLock lock(mutex_);
    open.swap(open_);
  }
  bool gave = false;
  if (!open.empty()) {
    const bool in_order = reuse_ == Reuse::kInOrder;
    gave = giveAll(allocator, in_order ? orderOpen(std::move(open)) : fenceOpen(std::move(open)));
  }
  // An event of a capture in a forbidding mode may not be asked; what waits goes on waiting.
  if (captures_.maybe()) return gave;
  return giveAll(allocator, passedBatches(&Functions::queryEvent)) || gave;
}

void Cooling::settleWaiting(CachingAllocator& allocator) {
  const MutexLock settling(settling_);
  (void)settleAlone(allocator);
  if (!captures_.maybe()) (void)giveAll(allocator, passedBatches(&Functions::synchronizeEvent));
}

}  // namespace cistern::preload::GPU_NAMESPACE
