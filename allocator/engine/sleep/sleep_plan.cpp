#include "allocator/engine/sleep/sleep_plan.hpp"

#include <algorithm>

#include "allocator/engine/sleep/block_flags.hpp"

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

void SleepPlan::look(const std::vector<Heap*>& heaps) {
  for (Heap* heap : heaps) {
    heap->mutex().assertHeld();
    parts_[&heap->pool()].heaps.push_back(heap);
    pages::forEachCurrent(*heap, [this](const Mapping& mapping) { add(*mapping.page); });
  }
  std::ranges::sort(pages_, {}, &PlannedPage::address);
  for (std::size_t i = 0; i < pages_.size(); ++i) number_of_[pages_[i].page] = i;
  for (Heap* heap : heaps) {
    heap->mutex().assertHeld();
    lookAt(*heap);
  }
  noteGoing();
}

void SleepPlan::add(PhysicalPage& page) {
  PlannedPage& planned = pages_.emplace_back();
  planned.page = &page;
  planned.used = page.holds.any();
  if (isExported(page)) planned.stays = WhyStayed::kExported;
  if (page.kind != PageKind::kDevice) planned.stays = WhyStayed::kOnHost;
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

// ---- Bytes --------------------------------------------------------------------------------------

void SleepPlan::noteGoing() {
  for (const PlannedPage& planned : pages_) {
    if (planned.stays) continue;
    parts_[&planned.page->current->range->home->pool()].going.push_back(
        {planned.address(), planned.address() + planned.page->bytes()});
  }
  for (auto& [pool, part] : parts_) part.going = merged(part.going);
}

// The blocks whose bytes have that fate.
std::vector<AddressRange> SleepPlan::blocksOf(const Pool& pool, Contents contents,
                                              Contents otherwise) {
  std::vector<AddressRange> ranges;
  for (Heap* heap : parts_[&pool].heaps) {
    noteSteps(1);
    heap->mutex().assertHeld();
    forEachBlock(*heap, [&](const Block& block) {
      if (!isLive(block) || block_flags::contentsOf(block, otherwise) != contents) return;
      const Address at = deviceAddress(block);
      ranges.push_back({at, at + block.bytes()});
    });
  }
  std::ranges::sort(ranges, {}, &AddressRange::from);
  return merged(ranges);
}

// A page may be current elsewhere in its pool. Its bytes are saved where it is.
void SleepPlan::addCurrent(const AddressRange& range, std::vector<AddressRange>& to) const {
  const auto* const segment = state_.core.map.find(range.from);
  if (segment == nullptr || !isRange(*segment) || !segment->covers(range.to - 1)) return;
  const auto& in = static_cast<const pages::PageRange&>(*segment);
  pages::forEachMapping(
      in, in.placeOf(range.from), in.placeOf(range.to), [&](const Mapping& mapping) {
        const Mapping* const current = mapping.page->current;
        if (current == nullptr) return;
        const Address base = mapping.deviceAddress(), end = base + mapping.bytes();
        const Address from = std::max(range.from, base), until = std::min(range.to, end);
        const Address at = current->deviceAddress() + (from - base);
        to.push_back({at, at + (until - from)});
      });
}

std::vector<AddressRange> SleepPlan::toSave(const SleepingPool& of, Contents otherwise) {
  std::vector<AddressRange> ranges = blocksOf(*of.pool, Contents::kSave, otherwise);
  if (otherwise == Contents::kSave) {
    for (const AddressRange& result : of.results) addCurrent(result, ranges);
    std::ranges::sort(ranges, {}, &AddressRange::from);
  }
  return intersection(merged(ranges), going(*of.pool));
}

// Also where the memory stays.
std::vector<AddressRange> SleepPlan::toClear(const Pool& pool, Contents otherwise) {
  return blocksOf(pool, Contents::kZero, otherwise);
}

}  // namespace cistern
