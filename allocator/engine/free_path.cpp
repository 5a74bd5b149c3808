#include "allocator/engine/free_path.hpp"

namespace cistern {

// Larger blocks, those that the thread has had for longer, and those of other streams than the
// last.
void FreePath::free(void* pointer, const void* caller, Block* recent) noexcept {
  if (pointer == nullptr) return;
  if (recent != nullptr && CacheTable::last().giveAny(*recent, caller)) return;
  const Address address = toAddress(pointer);
  const auto [segment, heap] = core_.locate(address);
  if (heap == nullptr) [[unlikely]]
    return core_.reports.misuse("free", address);
  // What is no block's address for sure is not looked for among records that others may be writing.
  Block* const block = address % kGranule == 0 ? heap->peek(*segment, address) : nullptr;
  ThreadCache* const cache = core_.caches.mine(heap->stream());
  if (block != nullptr && cache != nullptr && ownership::load(*block) == cache->holder()) {
    if (block != recent && cache->giveAny(*block, caller)) return;
    if (block->granules > CacheBins::kDirectGranules && !without(Mechanism::kExpectRelease))
      block->prefetchNeighbours();
    if (freeMine(*cache, *block, caller)) return;
  } else if (block != nullptr) {
    const RemoteFrees::Answer answer = sendToOwner(*block, cache, caller);
    if (answer == RemoteFrees::Answer::kTaken) return;
    if (answer == RemoteFrees::Answer::kNotHeld) return core_.reports.misuse("free", address);
  }
  freeToHeap(*segment, *heap, address, block, caller);
}

void FreePath::freeAt(Address address, const void* caller) noexcept {
  const auto [segment, heap] = core_.locate(address);
  if (heap == nullptr) return core_.reports.misuse("free", address);
  freeToHeap(*segment, *heap, address, nullptr, caller);
}

// A block of the thread's own cache, which had no room for it at once: it makes some, or the heap
// takes the block. False when there is more to it.
bool FreePath::freeMine(ThreadCache& cache, Block& block, const void* caller) noexcept {
  Heap& heap = cache.heap();
  Heap::Due due;
  {
    const MutexLock lock(heap.mutex());
    if (heap.completion().recorded() != 0 || ownership::load(block) != cache.holder()) [[unlikely]]
      return false;
    const WhoFreed who(caller, 0);
    if (!cache.accept(block, who)) {
      // Of two threads that free the block at the same moment, wrongly, one is told so.
      const std::uint32_t mine = cache.holder();
      if (!ownership::change(block, mine, ownership::moved(mine, ownership::Where::kRemoteFreed)))
        return false;
      cache.blocks().heap().letGo(block, who);
      if (heap.lowWater().pagesMoved()) cache.blocks().noteFall();
    }
    due = heap.dueAfterFree(cache.blocks().bytes());
  }
  if (due.any()) [[unlikely]]
    flusher_.afterFree(heap, due);
  return true;
}

// Sends a block to the cache that it belongs to, if that is another thread's. The program gives the
// block back, so that its record stands still. Larger ones are kept only where no other thread uses
// the stream, as this one may: thread_cache.hpp.
RemoteFrees::Answer FreePath::sendToOwner(Block& block, const ThreadCache* mine,
                                          const void* caller) noexcept {
  const std::uint32_t holder = ownership::load(block);
  if (!ownership::isOwned(holder) || ownership::whereIs(holder) != ownership::Where::kHeld)
    return RemoteFrees::Answer::kNoRoom;
  if (block.granules > CacheBins::kSmallGranules) return RemoteFrees::Answer::kNoRoom;
  if (mine != nullptr && holder == mine->holder()) return RemoteFrees::Answer::kNoRoom;
  ThreadCache* const owner = core_.caches.owner(holder);
  if (owner == nullptr) return RemoteFrees::Answer::kNoRoom;
  // Counted before the owner can hand the block out again, so that no peak counts it twice.
  const SizeKind kind = segmentOf(block).kind;
  const Counts counted = Counts::block(block.bytes(), block.use.asked, -1);
  core_.totals.count(kind, counted, {});
  const auto answer = owner->giveBack(block, holder, WhoFreed(caller, threadNumber()));
  if (answer != RemoteFrees::Answer::kTaken) core_.totals.count(kind, -counted, {});
  return answer;
}

// The program lets go of a block: into the calling thread's cache after all, or to the heap, out of
// whosever cache it is.
inline FreePath::Parted FreePath::part(Heap& heap, ThreadCache* cache, Block& block,
                                       const void* caller) noexcept {
  const std::uint32_t holder = ownership::load(block);
  if (!ownership::isOwned(holder)) return Parted::kFromProgram;
  if (cache && holder == cache->holder() && cache->accept(block, WhoFreed(caller, 0)))
    return Parted::kCached;
  if (ownership::whereIs(holder) != ownership::Where::kHeld) return Parted::kNotHeld;
  if (!ownership::change(block, holder, ownership::moved(holder, ownership::Where::kRemoteFreed)))
    return Parted::kNotHeld;
  ownership::leaveToHeap(block, heap.stream());
  return Parted::kFromProgram;
}

inline void FreePath::freeLocked(HeapSegment& segment, Heap& heap, Address address,
                                 const void* caller, Freed& freed) noexcept {
  freed.block = heap.find(segment, address, freed.block);
  freed.recorded = heap.completion().recorded();
  if (freed.block == nullptr || freed.recorded != 0) return;
  Block& block = *freed.block;
  ThreadCache* const cache = heap.pool().isDefault() ? core_.caches.mine(heap.stream()) : nullptr;
  const Parted parted = part(heap, cache, block, caller);
  if (parted == Parted::kNotHeld) {
    freed.block = nullptr;
    return;
  }
  if (parted == Parted::kFromProgram) {
    heap.frees().note(address, block.granules, caller, threadNumber());
    freed.pending = block.use.uses != nullptr || block.use.stream != heap.stream();
    if (freed.pending) {
      freed.uses = heap.setPending(block);
      return;
    }
    heap.release(block, core_.now());
    if (cache != nullptr && heap.lowWater().pagesMoved()) cache->blocks().noteFall();
  }
  freed.due = heap.dueAfterFree();
}

// `seen`: the block at the address, as it was looked up without the lock; or null.
void FreePath::freeToHeap(HeapSegment& segment, Heap& heap, Address address, Block* seen,
                          const void* caller) noexcept {
  Freed freed;
  freed.block = seen;
  {
    const MutexLock lock(heap.mutex());
    freeLocked(segment, heap, address, caller, freed);
  }
  if (freed.block == nullptr) [[unlikely]]
    return core_.reports.misuse("free", address);
  if (freed.recorded != 0) [[unlikely]] {
    if (!captures_.free(heap, segment, address, caller, freed.recorded)) freeAt(address, caller);
    return;
  }
  if (freed.pending) [[unlikely]]
    return cross_stream_.deferFree(heap, *freed.block, freed.uses);
  if (freed.due.any()) [[unlikely]]
    flusher_.afterFree(heap, freed.due);
}

}  // namespace cistern
