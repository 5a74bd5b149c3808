#include "allocator/engine/sleep/sleep_plan.hpp"

#include <algorithm>

namespace cistern {

using pages::Mapping;
using pages::PhysicalPage;

namespace {

bool isIn(const Block& block) { return !block.isFree() && !block.isHole(); }

/// Whether the program holds the block, and nobody of another pool does.
bool isLive(const Block& block) {
  return block.state() == BlockState::kAllocated && block.epoch != Request::kLent;
}

bool isExported(const PhysicalPage& page) {
  return page.holds.exports != 0 || !page.exported.expired();
}

}  // namespace

void SleepPlan::look(const std::vector<SleepingPool>& pools, const std::vector<Heap*>& heaps) {
  heaps_ = heaps;
  for (PhysicalPage& page : state_.table.pages()) {
    if (page.current == nullptr) continue;
    const Pool& pool = page.current->range->home->pool();
    if (std::ranges::none_of(pools, [&](const auto& of) { return of.pool == &pool; })) continue;
    PlannedPage& planned = pages_.emplace_back();
    planned.page = &page;
    planned.record = pages::recordFor(page);
    planned.used = page.holds.any();
    if (isExported(page)) planned.stays = WhyStayed::kExported;
  }
  std::ranges::sort(pages_, {}, &PlannedPage::address);
  for (std::size_t i = 0; i < pages_.size(); ++i) number_of_[pages_[i].page] = i;
  for (Heap* heap : heaps_) {
    heap->mutex().assertHeld();
    lookAt(*heap);
  }
}

void SleepPlan::lookAt(Heap& heap) {
  heap.mutex().assertHeld();
  forEachBlock(heap, [&](const Block& block) {
    if (!isIn(block)) return;
    pages::forEachMapping(pages::rangeOf(block), block.address(), block.end(),
                          [&](const Mapping& mapping) {
                            PlannedPage& planned = pages_[number_of_.at(mapping.page)];
                            planned.used = true;
                            const bool lent = block.epoch == Request::kLent;
                            if (lent && !planned.stays) planned.stays = WhyStayed::kLent;
                          });
  });
}

std::size_t SleepPlan::countOf(const Heap& heap) const {
  return std::size_t(std::ranges::count_if(pages_, [&](const PlannedPage& planned) {
    return planned.page->current->range->home == &heap;
  }));
}

// ---- Bytes --------------------------------------------------------------------------------------

// The memory of the pool that goes.
std::vector<AddressRange> SleepPlan::going(const Pool& pool) const {
  std::vector<AddressRange> ranges;
  for (const PlannedPage& planned : pages_) {
    const bool of_pool = &planned.page->current->range->home->pool() == &pool;
    if (of_pool && !planned.stays)
      ranges.push_back({planned.address(), planned.address() + planned.page->bytes()});
  }
  return merged(ranges);
}

// The blocks whose bytes have that fate.
std::vector<AddressRange> SleepPlan::blocksOf(const Pool& pool, Contents contents,
                                              Contents otherwise) {
  std::vector<AddressRange> ranges;
  for (Heap* heap : heaps_) {
    heap->mutex().assertHeld();
    if (&heap->pool() != &pool) continue;
    forEachBlock(*heap, [&](const Block& block) {
      heap->mutex().assertHeld();
      if (!isLive(block) || heap->contentsOf(block, otherwise) != contents) return;
      const Address at = deviceAddress(block);
      ranges.push_back({at, at + block.bytes()});
    });
  }
  std::ranges::sort(ranges, {}, &AddressRange::from);
  return merged(ranges);
}

std::vector<AddressRange> SleepPlan::toSave(const Pool& pool, Contents otherwise) {
  return intersection(blocksOf(pool, Contents::kSave, otherwise), going(pool));
}

std::vector<AddressRange> SleepPlan::toClear(const Pool& pool, Contents otherwise) {
  return intersection(blocksOf(pool, Contents::kZero, otherwise), going(pool));
}

}  // namespace cistern
