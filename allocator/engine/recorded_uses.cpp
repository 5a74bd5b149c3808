// A block that is used on other streams beside its own.
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

void CachingAllocator::recordStream(void* pointer, Stream stream) {
  if (pointer == nullptr) return;
  if (heaps_.find(stream) == nullptr) {
    requireLive(stream);
    streams_.registerStream(stream);
  }
  const auto [segment, heap] = locate(toAddress(pointer));
  if (heap != nullptr) {
    const MutexLock lock(heap->mutex());
    if (Block* block = heap->find(*segment, toAddress(pointer))) {
      if (noteUse(*heap, *block, stream)) return;
    }
  }
  reports_.misuse("recordStream", toAddress(pointer));
}

// A block that others use is the heap's to look after. False when somebody frees it meanwhile.
bool CachingAllocator::noteUse(const Heap& heap, Block& block, Stream stream) {
  if (stream == heap.streamOf(block)) return true;
  const std::uint32_t holder = ownership::load(block);
  if (ownership::isOwned(holder)) {
    if (ownership::whereIs(holder) != ownership::Where::kHeld) return false;
    if (!ownership::change(block, holder, ownership::moved(holder, ownership::Where::kRemoteFreed)))
      return false;
    ownership::leaveToHeap(block, heap.stream());
  }
  auto* uses = static_cast<StreamUses*>(block.use.uses);
  if (uses == nullptr) block.use.uses = uses = new StreamUses;
  uses->note(stream);
  return true;
}

}  // namespace cistern
