// What always holds of a backing at rest: see page.hpp and parking.hpp.
#include "allocator/base/check.hpp"
#include "allocator/engine/engine.hpp"
#include "allocator/engine/pages/page_backing.hpp"

namespace cistern {

using namespace pages;

namespace {

bool holdsPage(const PageRange& range, const Block& block) {
  const std::uint32_t end = range.unitAt(block.end());
  for (std::uint32_t unit = range.unitAt(block.address() + kUnit - 1); unit < end;) {
    const Mapping& mapping = *range.slots[unit];
    if (mapping.unit == unit && mapping.endUnit() <= end) return true;
    unit = mapping.endUnit();
  }
  return false;
}

}  // namespace

void PageBacking::audit(std::uint64_t reserved) const {
  mutex_.assertHeld();
  ground_.table.audit();
  CISTERN_CHECK(reserved == ground_.table.bytes() && reserved <= ground_.core.limit.reserved());
  std::uint64_t backed = 0;
  for (const auto& range : ground_.table.ranges()) {
    range->home->mutex().assertHeld();
    for (const Block* b = range->first; b; b = b->next) {
      if (!b->isHole()) backed += b->bytes();
      if (b->isFree() && range->home->withdrawn()) CISTERN_CHECK(!holdsPage(*range, *b));
      std::uint32_t unit = range->unitAt(b->address());
      for (; unit < range->unitAt(b->end() + kUnit - 1); ++unit) {
        const Mapping* mapping = range->slots[unit];
        CISTERN_CHECK(b->isHole() ? mapping == nullptr || !mapping->isCurrent()
                                  : mapping != nullptr && mapping->isCurrent());
      }
    }
  }
  std::size_t parked = 0;
  std::uint64_t parked_bytes = 0;
  for (const PhysicalPage* page : ground_.table.pages()) {
    if (page->current) backed -= page->bytes();
    if (!page->parked) continue;
    ++parked;
    parked_bytes += page->bytes();
    const Mapping& home = *page->mappings.front();
    CISTERN_CHECK(page->current == nullptr && page->late && page->mayLeave() && !page->spare);
    CISTERN_CHECK(home.accessible && home.range->home == page->counted_by);
  }
  CISTERN_CHECK(backed == 0);
  CISTERN_CHECK(parked == ground_.parked.size());
  CISTERN_CHECK(parked_bytes == ground_.counters.parked_bytes);
}

}  // namespace cistern
