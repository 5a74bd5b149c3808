#include "allocator/base/process.hpp"
#include "allocator/engine/exchange/exchange.hpp"

namespace cistern {

// The heap looks after a block that others use. False when somebody frees it meanwhile.
bool recordUse(Engine& engine, Address address, Stream stream) {
  const auto [segment, heap] = engine.locate(address);
  if (heap == nullptr) return false;
  const MutexLock lock(heap->mutex());
  Block* const block = heap->find(*segment, address);
  if (block == nullptr) return false;
  if (stream == heap->streamOf(*block)) return true;
  const std::uint32_t holder = ownership::load(*block);
  if (ownership::isOwned(holder) && !ownership::takeOutOfCache(*block, holder, heap->stream()))
    return false;
  auto* uses = static_cast<StreamUses*>(block->use.uses);
  if (uses == nullptr) block->use.uses = uses = new StreamUses;
  uses->note(stream);
  return true;
}

void deferFree(Engine& engine, Block& block, const StreamUses& uses, bool captured) noexcept {
  if (!driverMayBeCalled()) return;  // at exit nobody will use it again
  if (uses.all() && !uses.unknown()) return deferToAll(engine, block, uses, captured);
  engine.pending.add({&block, false, captured}, uses);
}

// Without host memory it is not known which streams those are.
void deferToAll(Engine& engine, Block& block, const StreamUses& told, bool captured) noexcept try {
  if (!driverMayBeCalled()) return;
  StreamUses all = told;
  all.note(heapOf(block).stream());
  for (const Stream stream : engine.streams.all()) {
    if (engine.progress.mayHaveWork(stream)) all.note(stream);
  }
  engine.pending.add({&block, true, captured}, all);
} catch (const std::bad_alloc&) {
  engine.pending.addUnknown(block);
}

// During a capture into the pool, other streams of the capture may take a block that comes back. So
// it comes back only when no stream uses it any more. `all` says that the block has waited for all
// known streams. If it has waited only for recorded uses, it waits again. `captured` says that a
// capture that is under way may have had the memory. Then the block does not count as complete for
// all streams.
void putBack(Engine& engine, const PendingFrees::Pending& pending) noexcept {
  Block& block = *pending.block;
  Heap& heap = heapOf(block);
  Heap::Due due;
  bool too_early = false;
  {
    const MutexLock lock(heap.mutex());
    const bool captured_into = heap.completion().captured() != 0;
    too_early = captured_into && !pending.all;
    if (too_early) {
      if (block.state() == BlockState::kAllocated) (void)heap.setPending(block);  // a loan's
    } else {
      const bool for_all = captured_into && !pending.captured;
      heap.release(block, engine.now(), for_all ? Heap::Freed::kComplete : Heap::Freed::kNow);
      due = heap.dueAfterFree();
    }
  }
  too_early ? deferToAll(engine, block, {}, pending.captured) : afterFree(engine, heap, due);
}

}  // namespace cistern
