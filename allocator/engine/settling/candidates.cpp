#include "allocator/engine/settling/candidates.hpp"

#include <algorithm>
#include <tuple>

#include "allocator/engine/cache/held_caches.hpp"

namespace cistern {
namespace {

using pages::kUnit;
using pages::Mapping;
using pages::PhysicalPage;

// A pool in host memory has nothing to move. In a capture, or asleep, nothing may move.
bool mayMove(const Heap& heap, Stream stream) {
  return heap.onPages() && heap.stream() == stream && pagesOf(heap) != PageKind::kHost &&
         !heap.pool().asleep && heap.pool().recording() == nullptr;
}

bool isOneStreams(const Heap& heap, const Block& block) {
  if (block.state() != BlockState::kAllocated || !ownership::heldByProgram(block)) return false;
  if (ownership::isOwned(ownership::load(block))) return true;
  return block.use.uses == nullptr && block.use.stream == heap.stream() &&
         block.epoch != Request::kLent;
}

/// A page that may move, and the block that it lies in.
struct Candidate {
  PhysicalPage* page;
  Address block;
};

// Visits blocks of a page and more.
template <class Visit>
void forEachLarge(Engine& engine, Stream stream, Visit visit)
    CISTERN_REQUIRES(engine.pages.mutex()) {
  for (Heap* heap : engine.heaps.all()) {
    if (!mayMove(*heap, stream)) continue;
    const MutexLock lock(heap->mutex());
    const HeldCaches held_still(*heap);
    forEachBlock(*heap, [&](Block& block) {
      if (block.bytes() >= kUnit && isOneStreams(*heap, block)) visit(*heap, block);
    });
  }
}

// Stale mappings of a page are those of other addresses, which work may still use.
std::vector<Candidate> candidates(Engine& engine, Stream stream, PageKind kind)
    CISTERN_REQUIRES(engine.pages.mutex()) {
  std::vector<Candidate> found;
  forEachLarge(engine, stream, [&](const Heap&, const Block& block) {
    pages::forEachMapping(
        pages::rangeOf(block), block.address(), block.end(), [&](const Mapping& mapping) {
          PhysicalPage& page = *mapping.page;
          const bool within =
              mapping.place() >= block.address() && mapping.placeEnd() <= block.end();
          if (within && mapping.isCurrent() && page.kind == kind && page.mayLeave() &&
              page.mappings.size() == 1 && page.exported.expired())
            found.push_back({&page, deviceAddress(block)});
        });
  });
  return found;
}

// A page that is too large for the rest is passed over.
std::vector<PhysicalPage*> enough(const Moves& moves, const std::vector<Candidate>& from) {
  std::vector<PhysicalPage*> pages;
  std::uint64_t chosen = 0;
  for (const Candidate& each : from) {
    if (chosen >= moves.wanted) break;
    if (each.page->bytes() > moves.most - chosen) continue;
    pages.push_back(each.page);
    chosen += each.page->bytes();
  }
  return pages;
}

}  // namespace

// A cached block would keep its mark when the cache hands it out again. So the block becomes the
// heap's alone, and its free comes to the heap.
std::vector<LongLived::Living> markLiving(Engine& engine, Stream stream) {
  std::vector<LongLived::Living> living;
  forEachLarge(engine, stream, [&](const Heap& heap, Block& block) {
    const std::uint32_t holder = ownership::load(block);
    if (ownership::isOwned(holder) && !ownership::takeOutOfCache(block, holder, heap.stream()))
      return;  // another thread frees it
    living.push_back({deviceAddress(block), block.epoch == Request::kSettled});
    block.epoch = Request::kSettled;
  });
  return living;
}

std::vector<PhysicalPage*> pagesForHost(Engine& engine, Stream stream, const LongLived& known,
                                        const Moves& moves) {
  std::vector<Candidate> found = candidates(engine, stream, PageKind::kDevice);
  std::erase_if(found, [&](const Candidate& of) { return !known.livesOn(of.block); });
  std::ranges::sort(found, std::greater(), [&](const Candidate& of) {
    return std::tuple(known.since(of.block), of.block, of.page->current->deviceAddress());
  });
  return enough(moves, found);
}

std::vector<PhysicalPage*> pagesForDevice(Engine& engine, Stream stream, const LongLived& known,
                                          const Moves& moves) {
  std::vector<Candidate> found = candidates(engine, stream, PageKind::kOverflow);
  std::ranges::sort(found, std::less(), [&](const Candidate& of) {
    const bool lives_on = known.livesOn(of.block);
    return std::tuple(lives_on, known.since(of.block), of.block, of.page->current->deviceAddress());
  });
  return enough(moves, found);
}

std::uint64_t residentOverflow(Engine& engine, Stream stream, const LongLived& known) {
  std::uint64_t bytes = 0;
  for (Heap* heap : engine.heaps.with(PageKind::kOverflow)) {
    if (heap->stream() != stream) continue;
    const MutexLock lock(heap->mutex());
    forEachBlock(*heap, [&](const Block& block) {
      const bool in_use = block.state() == BlockState::kAllocated;
      engine.pages.mutex().assertHeld();
      if (in_use && known.livesOn(deviceAddress(block))) bytes += engine.pages.hostBytesIn(block);
    });
  }
  return bytes;
}

}  // namespace cistern
