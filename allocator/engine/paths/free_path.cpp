#include "allocator/base/ablation.hpp"
#include "allocator/base/thread_number.hpp"
#include "allocator/engine/capture/live_capture.hpp"
#include "allocator/engine/errors/engine_errors.hpp"
#include "allocator/engine/exchange/exchange.hpp"
#include "allocator/engine/paths/fast_path.hpp"
#include "allocator/engine/paths/slow_path.hpp"

namespace cistern::slow_path {
namespace {

using ownership::Where;

/// The outcome of a free under the heap's lock.
struct Outcome {
  Block* block = nullptr;      ///< null: none that the program has
  std::uint32_t captured = 0;  ///< the number of the capture that is to take it, or 0
  bool pending = false;        ///< other streams still use it:
  StreamUses uses;             ///< those
  Heap::Due due;
};

// Gives the cache a block, of any size, that its owner frees. False when the block is not the
// cache's, or the cache has no room.
bool give(ThreadCache& cache, Block& block, const void* caller) noexcept {
  return fast_path::free<fast_path::AllSizes>(
      cache, fast_path::Known{}, [&](const ThreadCounters&) { return &block; }, caller,
      [] { return true; }, [](Block*) { return false; });
}

// Sends a block to the cache that it belongs to, another thread's. The program gives the block
// back, so that its record stands still. Larger ones are kept only where no other thread uses the
// stream, as this one may: cached_blocks.hpp.
RemoteFrees::Answer sendToOwner(Engine& engine, Block& block, std::uint32_t holder,
                                const void* caller) noexcept {
  if (!ownership::isOwned(holder) || ownership::whereIs(holder) != Where::kHeld ||
      block.granules > CacheSizes::kSmall)
    return RemoteFrees::Answer::kNoRoom;
  ThreadCache* const owner = engine.caches.owner(holder);
  if (owner == nullptr) return RemoteFrees::Answer::kNoRoom;
  // Counted before the owner can hand the block out again, so that no peak counts it twice.
  const SizeKind kind = segmentOf(block).kind;
  const Counts counted = Counts::block(block.bytes(), block.use.asked, -1);
  engine.totals.count(kind, counted, {});
  const auto answer = owner->freeRemotely(block, holder, WhoFreed(caller, threadNumber()));
  if (answer != RemoteFrees::Answer::kTaken) engine.totals.count(kind, Counts{} - counted, {});
  return answer;
}

inline void freeLocked(Engine& engine, HeapSegment& segment, Heap& heap, Address address,
                       Block* seen, const void* caller, Outcome& freed) noexcept
    CISTERN_REQUIRES(heap.mutex()) {
  freed.block = heap.find(segment, address, seen);
  freed.captured = heap.completion().captured();
  if (freed.block == nullptr || freed.captured != 0) return;
  Block& block = *freed.block;
  const bool cached = heap.pool().isDefault() && !heap.overflow();
  ThreadCache* const cache = cached ? engine.caches.mine(heap.stream()) : nullptr;
  const std::uint32_t holder = ownership::load(block);
  const bool mine = cache != nullptr && holder == cache->holder() && !heap.isObserved();
  if (!mine || !cache->accept(block, WhoFreed(caller, 0))) {
    if (ownership::isOwned(holder) && !ownership::takeOutOfCache(block, holder, heap.stream())) {
      freed.block = nullptr;
      return;
    }
    heap.frees().note(address, block.granules, caller, threadNumber());
    freed.pending = block.use.uses != nullptr || block.use.stream != heap.stream();
    if (freed.pending) {
      freed.uses = heap.setPending(block);
      return;
    }
    heap.release(block, engine.now());
    if (cache != nullptr && heap.lowWater().pagesMoved()) cache->blocks().noteFall();
  }
  freed.due = heap.dueAfterFree(mine ? cache->blocks().bytes() : 0);
}

// False when the capture is over: then it is an ordinary free, or one of the next capture, which
// the heap then knows.
bool freeInCapture(Heap& heap, const HeapSegment& segment, Address address, const void* caller,
                   std::uint32_t number) noexcept {
  const std::shared_ptr<LiveCapture> capture = heap.pool().capture();
  if (capture && capture->free(heap, segment, address, caller)) return true;
  const MutexLock lock(heap.mutex());
  (void)heap.completion().endCapture(number);
  return false;
}

// `seen`: the block at the address, as it was looked up without the lock; or null.
void freeToHeap(Engine& engine, HeapSegment& segment, Heap& heap, Address address, Block* seen,
                const void* caller) noexcept {
  Outcome freed;
  {
    const MutexLock lock(heap.mutex());
    freeLocked(engine, segment, heap, address, seen, caller, freed);
  }
  if (freed.block == nullptr) [[unlikely]]
    return reportMisuse(engine, "free", address);
  if (freed.captured != 0) [[unlikely]] {
    if (!freeInCapture(heap, segment, address, caller, freed.captured))
      freeAt(engine, address, caller);
    return;
  }
  if (freed.pending) [[unlikely]]
    return deferFree(engine, *freed.block, freed.uses);
  if (freed.due.any()) [[unlikely]]
    afterFree(engine, heap, freed.due);
}

}  // namespace

// Larger blocks, those that the thread has had for longer, and those of other streams than the
// last. An address that is surely no block's is not looked up: others may be writing the records.
void free(Engine& engine, void* pointer, const void* caller, Block* recent) noexcept {
  if (pointer == nullptr) return;
  if (recent != nullptr && ownership::load(*recent) != CacheTable::last().holder())
    recent = nullptr;
  if (recent != nullptr && give(CacheTable::last(), *recent, caller)) return;
  if (!engine.made.isHere()) [[unlikely]]
    return;  // the memory is the parent's
  const Address address = toAddress(pointer);
  const auto [segment, heap] = engine.locate(address);
  if (heap == nullptr) [[unlikely]]
    return reportMisuse(engine, "free", address);
  Block* const block = address % kGranule == 0 ? heap->peek(*segment, address) : nullptr;
  if (block != nullptr) {
    const std::uint32_t holder = ownership::load(*block);
    ThreadCache* const cache = engine.caches.mine(heap->stream());
    if (cache != nullptr && holder == cache->holder()) {
      if (block != recent && give(*cache, *block, caller)) return;
      if (block->granules > CacheSizes::kDirect && !without(Mechanism::kExpectRelease))
        block->prefetchNeighbours();
    } else {
      const RemoteFrees::Answer answer = sendToOwner(engine, *block, holder, caller);
      if (answer == RemoteFrees::Answer::kTaken) return;
      if (answer == RemoteFrees::Answer::kNotHeld) return reportMisuse(engine, "free", address);
    }
  }
  freeToHeap(engine, *segment, *heap, address, block, caller);
}

void freeAt(Engine& engine, Address address, const void* caller) noexcept {
  const auto [segment, heap] = engine.locate(address);
  if (heap == nullptr) return reportMisuse(engine, "free", address);
  freeToHeap(engine, *segment, *heap, address, nullptr, caller);
}

}  // namespace cistern::slow_path
