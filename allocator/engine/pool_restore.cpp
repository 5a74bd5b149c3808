// Setting a pool back to the blocks it held at an earlier moment.
#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "allocator/base/check.hpp"
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {
namespace {

bool sameBlock(const LiveBlock& a, const LiveBlock& b) {
  return a.address == b.address && a.bytes == b.bytes;
}

// What `from` has and `without` has not; both are in the order of addresses.
std::vector<LiveBlock> difference(const std::vector<LiveBlock>& from,
                                  const std::vector<LiveBlock>& without) {
  std::vector<LiveBlock> rest;
  for (const LiveBlock& block : from) {
    const auto it = std::lower_bound(
        without.begin(), without.end(), block,
        [](const LiveBlock& a, const LiveBlock& b) { return a.address < b.address; });
    if (it == without.end() || !sameBlock(*it, block)) rest.push_back(block);
  }
  return rest;
}

bool isAmong(const std::vector<LiveBlock>& blocks, const Block& block) {
  const Address address = deviceAddress(block);
  return std::any_of(blocks.begin(), blocks.end(), [&](const LiveBlock& other) {
    return other.address == address && other.bytes == block.bytes();
  });
}

[[noreturn]] void refuse(const LiveBlock& block, const char* why) {
  throw PoolError(fmt::format("cannot set back its block of {} bytes at {:#x}: {}", block.bytes,
                              block.address, why));
}

// All of it must be free, or be among what is about to be.
void checkPlace(const LiveBlock& wanted, const Heap& heap, const HeapSegment& segment,
                const std::vector<LiveBlock>& leaving) {
  const Address from = segment.placeOf(wanted.address);
  for (const Block* b = Layout::covering(segment, from); b && b->address() < from + wanted.bytes;
       b = b->next) {
    if (b->isFree()) continue;
    if (b->isHole()) refuse(wanted, "its memory has left the pool");
    const bool alone = b->state() == BlockState::kAllocated && b->use.uses == nullptr &&
                       b->use.stream == heap.stream();
    if (!alone || !isAmong(leaving, *b))
      refuse(wanted, "queued work of several streams still uses part of it");
  }
  if (from + wanted.bytes > segment.end()) refuse(wanted, "its memory has left the pool");
}

}  // namespace

// The pool's user sees to it that nothing else happens in the pool meanwhile; nobody else takes its
// memory either, nor does it move.
void CachingAllocator::restore(Pool& pool, const std::vector<LiveBlock>& wanted,
                               std::vector<LiveBlock>& freed,
                               std::vector<LiveBlock>& made) CISTERN_NO_TSA {
  if (pool.recording()) throw PoolError("cannot be set back while it is captured into");
  const MutexLock pressure(pressure_mutex_);
  std::unique_lock<Mutex> backing;
  if (pages_) backing = std::unique_lock(pages_->mutex());
  const std::vector<LiveBlock> live = liveBlocks(pool);
  freed = difference(live, wanted);
  made = difference(wanted, live);
  for (const LiveBlock& block : made) {
    const auto [segment, heap] = locate(block.address);
    if (heap == nullptr || &heap->pool() != &pool) refuse(block, "its memory has left the pool");
    const MutexLock lock(heap->mutex());
    if (!heap->owns(*segment, block.address)) refuse(block, "its memory has left the pool");
    checkPlace(block, *heap, *segment, freed);
  }
  for (const LiveBlock& block : freed) free(toPointer(block.address));
  for (const LiveBlock& block : made) remake(pool, block);
  backing = {};
  settle();
}

void CachingAllocator::remake(Pool& pool, const LiveBlock& block) {
  const auto [segment, heap] = locate(block.address);
  const MutexLock lock(heap->mutex());
  const Address place = segment->placeOf(block.address);
  Block* covering = Layout::covering(*segment, place);
  CISTERN_CHECK(covering && covering->isFree() && place + block.bytes <= covering->end());
  Request request;
  request.bytes = block.requested;
  request.grains = std::uint32_t(block.bytes >> kGrainShift);
  request.kind = segment->kind;
  request.stream = block.stream;
  request.pool = &pool;
  heap->allocateAt(*covering, place, request);
}

}  // namespace cistern
