// Setting a pool back to the blocks it held at an earlier moment. Pages that lay elsewhere then
// come back, as far as they are mapped there still, as those are that a graph has captured.
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

constexpr const char* kGone = "its memory has left the pool";
constexpr const char* kInUse = "queued work of several streams still uses part of it";

[[noreturn]] void refuse(const LiveBlock& block, const char* why) {
  throw PoolError(fmt::format("cannot set back its block of {} bytes at {:#x}: {}", block.bytes,
                              block.address, why));
}

// All of it that has memory must be free, or be among what is about to be.
void checkPlace(const LiveBlock& wanted, const Heap& heap, const HeapSegment& segment, Address from,
                Address to, const std::vector<LiveBlock>& leaving) {
  for (const Block* b = Layout::covering(segment, from); b && b->address() < to; b = b->next) {
    if (b->isFree() || b->isHole()) continue;
    const bool alone = b->state() == BlockState::kAllocated && b->use.uses == nullptr &&
                       b->use.stream == heap.stream();
    if (!alone || !isAmong(leaving, *b)) refuse(wanted, kInUse);
  }
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
  pages::Comeback comeback(pool);
  for (const LiveBlock& block : made) checkWanted(pool, block, freed, comeback);
  comeback.prepare();
  for (const LiveBlock& block : freed) free(toPointer(block.address));
  if (pages_) pages_->bring(comeback);
  for (const LiveBlock& block : made) remake(pool, block);
  backing = {};
  settle();
}

// The block's place is the pool's still, or its pages come back to it, and nobody uses it.
void CachingAllocator::checkWanted(const Pool& pool, const LiveBlock& wanted,
                                   const std::vector<LiveBlock>& leaving,
                                   pages::Comeback& comeback) CISTERN_NO_TSA {
  const auto [segment, heap] = locate(wanted.address);
  if (heap == nullptr || &heap->pool() != &pool) refuse(wanted, kGone);
  const Address from = segment->placeOf(wanted.address), to = from + wanted.bytes;
  {
    const MutexLock lock(heap->mutex());
    if (!heap->owns(*segment, wanted.address) || to > segment->end()) refuse(wanted, kGone);
    checkPlace(wanted, *heap, *segment, from, to, leaving);
  }
  if (!heap->onPages()) return;
  const std::size_t before = comeback.views().size();
  if (!comeback.want(static_cast<pages::PageRange&>(*segment), from, to)) refuse(wanted, kGone);
  for (std::size_t i = before; i < comeback.views().size(); ++i) {
    const pages::View& now = *comeback.views()[i]->page->current;
    Heap& source = *now.range->home;
    {
      const MutexLock lock(source.mutex());
      checkPlace(wanted, source, *now.range, now.place(), now.placeEnd(), leaving);
    }
    if (&source != heap && !progress_.orderAfter(heap->stream(), source.stream()))
      refuse(wanted, kInUse);
  }
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
