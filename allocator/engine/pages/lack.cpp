// The memory that a refused request lacks, for the report on it.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "allocator/engine/pages/page_backing.hpp"

namespace cistern {

using namespace pages;

namespace {

using Pages = std::unordered_set<const PhysicalPage*>;

bool isOpen(const Block* block) { return block && (block->isFree() || block->isHole()); }

// Returns the bytes of those that are of use to the request, but stay: pages of its pool that a
// graph holds move within the pool.
std::uint64_t addFree(State& state, Heap& heap, const Request& request, PageKind kind,
                      bool incomplete, Pages& free) {
  const MutexLock lock(heap.mutex());
  const bool same_pool = &heap.pool() == request.pool;
  std::uint64_t stay = 0;
  const FreePageScan scan(heap, state.number);
  for (const Mapping* mapping : scan.freeMappings()) {
    const bool unused = incomplete || heap.completion().complete(mapping->last_use);
    if (!unused || !mayHold(kind, mapping->page->kind)) continue;
    if (!mapping->page->mayLeave() && !same_pool) continue;
    if (!mapping->page->mayLeave()) stay += mapping->page->bytes();
    free.insert(mapping->page);
  }
  return stay;
}

/// The places of one heap where the request could go without the pages that lie free. They are
/// those that bestWindow considers when these pages are gone.
class Places {
 public:
  Places(const Request& request, const Pages& gone) : bytes_(request.rounded()), gone_(gone) {}

  /// The fewest units to map, for all of them. Behind all blocks there is always room.
  std::uint64_t leastUnits(Heap& heap, SizeKind kind) CISTERN_REQUIRES(heap.mutex()) {
    least_ = roundUp(bytes_, kUnit) / kUnit;
    for (const Segment* in = heap.layout(kind).segments(); in != nullptr; in = in->next) {
      for (const Block* block = in->first; block != nullptr; block = block->next) {
        if (isOpen(block)) considerIn(*block);
      }
    }
    return least_;
  }

 private:
  bool isGone(const Mapping* mapping) const {
    return mapping == nullptr || gone_.contains(mapping->page);
  }
  /// A stale mapping of a page that is in use elsewhere bars the way.
  bool bars(const Mapping& mapping) const { return !isGone(&mapping) && !mapping.isCurrent(); }

  void considerIn(const Block& block) {
    const PageRange& range = rangeOf(block);
    const bool stays = !isGone(range.slots[range.unitAt(block.address())]);
    if (!isOpen(block.prev) || (block.isFree() && stays)) consider(block, block.address());
    if (!block.isHole()) return;
    forEachMapping(range, block.address(), block.end(), [&](const Mapping& mapping) {
      if (bars(mapping) && mapping.placeEnd() < block.end()) consider(block, mapping.placeEnd());
    });
  }

  void consider(const Block& first, Address from) {
    if (const auto units = unitsFrom(first, from)) least_ = std::min(least_, *units);
  }

  std::optional<std::uint64_t> unitsFrom(const Block& first, Address from) const {
    const PageRange& range = rangeOf(first);
    std::uint64_t units = 0;
    const Block* block = &first;
    for (Address at = from; at - from < bytes_;) {
      while (block != nullptr && block->end() <= at) block = block->next;
      if (!isOpen(block)) return std::nullopt;
      const std::uint32_t unit = range.unitAt(at);
      const Mapping* const mapping = range.slots[unit];
      if (isGone(mapping)) {
        ++units;
        at = range.placeOfUnit(unit + 1);
      } else if (mapping->isCurrent()) {
        at = std::min(block->end(), mapping->placeEnd());
      } else {
        return std::nullopt;
      }
    }
    return units;
  }

  const std::uint64_t bytes_;
  const Pages& gone_;
  std::uint64_t least_ = 0;
};

}  // namespace

PageBacking::Lack PageBacking::lackOf(Heap* own, const Request& request,
                                      const std::vector<Heap*>& heaps, PageKind kind,
                                      bool incomplete) {
  const MutexLock lock(mutex_);
  Pages free;
  std::uint64_t stay = 0;
  for (Heap* heap : heaps) {
    if (heap->onPages()) stay += addFree(state_, *heap, request, kind, incomplete, free);
  }
  Lack lack{roundUp(request.rounded(), kUnit), 0};
  for (const PhysicalPage* page : free) lack.free += page->bytes();
  lack.free -= stay;
  if (own != nullptr && own->onPages()) {
    const MutexLock heap_lock(own->mutex());
    lack.growth = Places(request, free).leastUnits(*own, request.kind) * kUnit;
  }
  lack.growth -= std::min(lack.growth, stay);
  return lack;
}

}  // namespace cistern
