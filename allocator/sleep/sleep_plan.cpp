#include "allocator/sleep/sleep_plan.hpp"

#include <algorithm>

#include "allocator/sleep/block_flags.hpp"

namespace cistern {

using pages::Mapping;
using pages::PhysicalPage;

namespace {

/// Whether the program holds the block, and nobody of another pool does.
bool isLive(const Block& block) {
  return block.state() == BlockState::kAllocated && block.epoch != Request::kLent;
}

bool isExported(const PhysicalPage& page) {
  return page.holds.exports != 0 || !page.exported.expired();
}

// The range lies in one that a graph holds. A page may be current elsewhere in its pool: its bytes
// are saved where it is.
void addCurrent(const pages::State& state, const AddressRange& range,
                std::vector<AddressRange>& to) {
  const auto* const segment = state.core.map.find(range.from);
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

}  // namespace

// What is to be cleared is so where the memory stays, too.
void SleepPlan::look(const pages::State& state, Contents otherwise) {
  AscendingSearch search;
  for (Heap* heap : heaps) {
    heap->mutex().assertHeld();
    pages::forEachCurrent(*heap, [&](const Mapping& mapping) { add(mapping, search); });
  }
  std::ranges::sort(planned, {}, &PlannedPage::address);
  std::vector<AddressRange> saved = blocksOf(Contents::kSave, otherwise);
  if (otherwise == Contents::kSave) {
    for (const AddressRange& result : of.results) addCurrent(state, result, saved);
    std::ranges::sort(saved, {}, &AddressRange::from);
  }
  saved = intersection(merged(saved), going());
  live = bytesOfRanges(saved);
  runs = joinedOverGaps(saved, going());
  of.zeroes = blocksOf(Contents::kZero, otherwise);
}

void SleepPlan::add(const Mapping& at, AscendingSearch& search) {
  PlannedPage page{at.page, at.page->holds.any()};
  if (isExported(*at.page)) page.stays = WhyStayed::kExported;
  if (at.page->holds.fixed != 0 || at.range->home->pool().isHeld()) page.stays = WhyStayed::kHeld;
  if (at.page->kind != MemoryKind::kPages) page.stays = WhyStayed::kOnHost;
  pages::forEachBlockIn(at, search, [&](const Block& block) {
    if (block.isFree() || block.isHole()) return;
    page.used = true;
    if (block.epoch == Request::kLent && !page.stays) page.stays = WhyStayed::kLent;
  });
  planned.push_back(page);
}

std::vector<AddressRange> SleepPlan::going() const {
  std::vector<AddressRange> ranges;
  for (const PlannedPage& one : planned) {
    if (!one.stays) ranges.push_back({one.address(), one.address() + one.page->bytes()});
  }
  return merged(ranges);
}

// The blocks whose bytes have that fate.
std::vector<AddressRange> SleepPlan::blocksOf(Contents contents, Contents otherwise) const {
  std::vector<AddressRange> ranges;
  for (Heap* heap : heaps) {
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

}  // namespace cistern
