// Setting a pool back to the blocks it held at an earlier moment.
#include <algorithm>

#include <fmt/format.h>

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
void checkPlace(const LiveBlock& wanted, const HeapSegment& segment,
                const std::vector<LiveBlock>& leaving) {
  const Address from = segment.placeOf(wanted.address);
  for (const Block* b = Layout::covering(segment, from); b && b->address() < from + wanted.bytes;
       b = b->next) {
    if (b->isFree()) continue;
    if (b->isHole()) refuse(wanted, "its memory has left the pool");
    const bool goes =
        b->state() == BlockState::kAllocated && b->use.uses == nullptr && isAmong(leaving, *b);
    if (!goes) refuse(wanted, "queued work of several streams still uses part of it");
  }
  if (from + wanted.bytes > segment.end()) refuse(wanted, "its memory has left the pool");
}

}  // namespace

// The pool's user sees to it that nothing else happens in the pool meanwhile.
void CachingAllocator::restore(Pool& pool, const std::vector<LiveBlock>& wanted,
                               std::vector<LiveBlock>& freed, std::vector<LiveBlock>& made) {
  const std::vector<LiveBlock> live = liveBlocks(pool);
  freed = difference(live, wanted);
  made = difference(wanted, live);
  for (const LiveBlock& block : made) {
    const auto [segment, heap] = locate(block.address);
    if (heap == nullptr || &heap->pool() != &pool) refuse(block, "its memory has left the pool");
    const MutexLock lock(heap->mutex());
    if (!heap->owns(*segment, block.address)) refuse(block, "its memory has left the pool");
    checkPlace(block, *segment, freed);
  }
  for (const LiveBlock& block : freed) free(toPointer(block.address));
  for (const LiveBlock& block : made) {
    const auto [segment, heap] = locate(block.address);
    const MutexLock lock(heap->mutex());
    Block* covering = Layout::covering(*segment, segment->placeOf(block.address));
    const Request request{block.requested, std::uint32_t(block.bytes >> kGrainShift),
                          segment->kind,   block.stream,
                          &pool,           nullptr};
    heap->allocateAt(*covering, segment->placeOf(block.address), request);
  }
  settle();
}

}  // namespace cistern
