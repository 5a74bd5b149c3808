// The walk that checks what block.hpp and layout.hpp promise.
#include "allocator/base/check.hpp"
#include "allocator/layout/layout.hpp"

namespace cistern {
namespace {

struct Walk {
  LayoutTotals totals;
  std::size_t free_blocks = 0;
  std::size_t holes = 0;
};

void auditBlock(const Segment& segment, const Block& b, const Block* prev, Walk& walk) {
  CISTERN_CHECK(b.segment == &segment && b.prev == prev && b.granules > 0);
  CISTERN_CHECK(b.address() == (prev ? prev->end() : segment.base));
  CISTERN_CHECK(b.state() != BlockState::kUnused);
  CISTERN_CHECK(!(b.isFree() && prev && prev->isFree()));
  CISTERN_CHECK(!(b.isHole() && prev && prev->isHole()));
  if (b.isHole()) {
    ++walk.holes;
    return;
  }
  walk.totals.segment_bytes += b.bytes();
  if (!b.isFree()) {
    ++walk.totals.busy_blocks;
    walk.totals.busy_bytes += b.bytes();
    return;
  }
  ++walk.free_blocks;
  if (segment.whollyFree()) return;
  ++walk.totals.split_free_blocks;
  walk.totals.split_free_bytes += b.bytes();
}

void auditSegment(const Segment& segment, Walk& walk) {
  const Block* prev = nullptr;
  for (const Block* b = segment.first; b; prev = b, b = b->next)
    auditBlock(segment, *b, prev, walk);
  CISTERN_CHECK(prev && prev->end() == segment.end());
  ++walk.totals.segments;
}

}  // namespace

void Layout::auditInTurn() {
  if (++unaudited_steps_ < tiling_.map.size()) return;
  unaudited_steps_ = 0;
  audit();
}

void Layout::audit() const {
  Walk walk;
  const Segment* prev = nullptr;
  for (const Segment* s = segments_.first; s; prev = s, s = s->next) {
    CISTERN_CHECK(s->prev == prev);
    auditSegment(*s, walk);
  }
  const LayoutTotals is = totals();
  CISTERN_CHECK(walk.totals.segments == is.segments);
  CISTERN_CHECK(walk.totals.segment_bytes == is.segment_bytes);
  CISTERN_CHECK(walk.totals.busy_blocks == is.busy_blocks);
  CISTERN_CHECK(walk.totals.busy_bytes == is.busy_bytes);
  CISTERN_CHECK(walk.totals.split_free_blocks == is.split_free_blocks);
  CISTERN_CHECK(walk.totals.split_free_bytes == is.split_free_bytes);
  CISTERN_CHECK(walk.free_blocks == tiling_.index.blocks());
  std::size_t listed = 0;
  for (const Block* b = holes(); b; b = b->links.right, ++listed) CISTERN_CHECK(b->isHole());
  CISTERN_CHECK(walk.holes == listed && listed == tiling_.holes);
  CISTERN_CHECK(tiling_.pool.countInUse() == tiling_.map.size() + tiling_.holes);
  tiling_.index.audit();
  tiling_.map.audit();
}

}  // namespace cistern
