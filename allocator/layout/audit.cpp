// The walks that check what block.hpp, layout.hpp, free_index.hpp, address_heap.hpp and
// size_tree.hpp promise.
#include "allocator/base/check.hpp"
#include "allocator/layout/address_heap.hpp"
#include "allocator/layout/layout.hpp"
#include "allocator/layout/size_tree.hpp"

namespace cistern {

// ---- The blocks of segments ---------------------------------------------------------------------

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
  CISTERN_CHECK(tiling_.records.countInUse() == tiling_.map.size() + tiling_.holes);
  tiling_.index.audit();
  tiling_.map.audit();
}

// ---- The index of free blocks -------------------------------------------------------------------

namespace {

void auditInHeap(const Block& b) {
  using namespace address_heap;
  const auto [parent, left, right] = b.links;
  CISTERN_CHECK(b.rank == rankOf(right) + 1 && b.rank <= rankOf(left) + 1);
  CISTERN_CHECK(parent == nullptr || !precedes(b, *parent));
}

void auditInTree(const Block& b, const Block* before) {
  CISTERN_CHECK(before == nullptr || size_tree::precedes(*before, b));
  const Block* parent = b.links.parent;
  CISTERN_CHECK(parent == nullptr || size_tree::priority(*parent) > size_tree::priority(b));
}

// Each link is checked before the walk goes along it, so that the way back leads home.
const Block* leftmost(const Block* b) {
  for (; b->links.left; b = b->links.left) CISTERN_CHECK(b->links.left->links.parent == b);
  return b;
}

// The next from left to right; null after the last.
const Block* following(const Block* b) {
  if (const Block* const right = b->links.right) {
    CISTERN_CHECK(right->links.parent == b);
    return leftmost(right);
  }
  while (b->links.parent && b->links.parent->links.right == b) b = b->links.parent;
  return b->links.parent;
}

// Calls visit(block, the one before) for all under a root, from left to right. It takes no host
// memory, as verbs that must not fail are audited too; and no recursion: a heap's left children may
// hang as deep as the bin is large.
template <class Visit>
void walk(const Block* root, Visit visit) {
  const Block* before = nullptr;
  for (const Block* b = root ? leftmost(root) : nullptr; b; before = b, b = following(b))
    visit(*b, before);
}

void auditLinks(const Block& b) {
  const auto [parent, left, right] = b.links;
  CISTERN_CHECK(left == nullptr || left->links.parent == &b);
  CISTERN_CHECK(right == nullptr || right->links.parent == &b);
  CISTERN_CHECK(parent == nullptr || parent->links.left == &b || parent->links.right == &b);
}

}  // namespace

void FreeIndex::audit() const {
  std::size_t blocks = 0;
  std::uint64_t granules = 0;
  for (unsigned r = 0; r < kRows; ++r) {
    const bool marked = (occupied_[r / 64] >> (r % 64)) & 1;
    const Row* const row = rowAt(r);
    CISTERN_CHECK(marked == (row && row->occupied != 0));
    for (unsigned c = 0; row && c < kColumns; ++c) {
      const Block* root = row->bins[c];
      CISTERN_CHECK(((row->occupied >> c) & 1) == (root != nullptr));
      CISTERN_CHECK(root == nullptr || root->links.parent == nullptr);
      walk(root, [&](const Block& b, const Block* before) {
        const Bin own = binOf(b.granules);
        CISTERN_CHECK(b.isFree() && own.row == r && own.column == c);
        auditLinks(b);
        r < kExactRows ? auditInHeap(b) : auditInTree(b, before);
        ++blocks;
        granules += b.granules;
      });
    }
  }
  auditLeftOut(blocks, granules);
  CISTERN_CHECK(blocks == blocks_ && granules == granules_);
}

void FreeIndex::auditLeftOut(std::size_t& blocks, std::uint64_t& granules) const {
  for (const Block* b = left_out_.first(); b; b = b->links.right) {
    CISTERN_CHECK(b->isFree() && rowAt(binOf(b->granules).row) == nullptr);
    CISTERN_CHECK(b->links.left ? b->links.left->links.right == b : left_out_.first() == b);
    ++blocks;
    granules += b->granules;
  }
}

}  // namespace cistern
