#include "allocator/layout/free_index.hpp"

#include <new>

#include "allocator/layout/address_heap.hpp"
#include "allocator/layout/size_tree.hpp"

namespace cistern {
namespace {

bool exact(FreeIndex::Bin bin) { return bin.row < FreeIndex::kExactRows; }

}  // namespace

bool FreeIndex::makeRow(unsigned index) noexcept {
  try {
    if (rows_.size() == rows_.capacity()) rows_.reserve(rows_.size() + 1 + rows_.size() / 4);
    rows_.emplace_back();
  } catch (const std::bad_alloc&) {
    return false;
  }
  row_of_[index] = std::uint8_t(rows_.size());
  return true;
}

// The first of its row. Blocks that were left out of the row enter it first.
void FreeIndex::insertFirst(Block& block) noexcept {
  const unsigned index = binOf(block.granules).row;
  if (!makeRow(index)) return leaveOut(block);
  for (Block* b = left_out_.first(); b;) {
    Block* const next = b->links.right;
    if (binOf(b->granules).row == index) {
      takeLeftOut(*b);
      insert(*b);
    }
    b = next;
  }
  insert(block);
}

bool FreeIndex::listAllLeftOut() noexcept {
  const std::size_t rows = rows_.size();
  while (Block* const first = left_out_.first()) {
    takeLeftOut(*first);
    insertFirst(*first);
    if (left_out_.first() == first) break;  // the host is short of memory still
  }
  return rows_.size() > rows;
}

void FreeIndex::leaveOut(Block& block) noexcept {
  left_out_.push(block);
  ++blocks_;
  granules_ += block.granules;
}

void FreeIndex::takeLeftOut(Block& block) noexcept {
  left_out_.remove(block);
  --blocks_;
  granules_ -= block.granules;
}

// Pre: the bin is not empty, nor will it be.
void FreeIndex::hang(Block*& root, Block& block) noexcept {
  isExact(block.granules) ? address_heap::insert(root, &block) : size_tree::insert(root, &block);
}

void FreeIndex::unhang(Block*& root, Block& block) noexcept {
  isExact(block.granules) ? address_heap::remove(root, &block) : size_tree::remove(root, &block);
}

unsigned FreeIndex::nextRow(unsigned from) const noexcept {
  if (from < 64) {
    const unsigned r = nextBit(occupied_[0], from);
    if (r < 64) return r;
    from = 64;
  }
  return 64 + nextBit(occupied_[1], from - 64);  // 128 when there is none
}

Block* FreeIndex::leastOf(Bin bin) const noexcept {
  Block* root = rowAt(bin.row)->bins[bin.column];
  return exact(bin) ? root : size_tree::leastAtLeast(root, 0);
}

Block* FreeIndex::firstFrom(unsigned row, unsigned column) const noexcept {
  if (row < kRows && rowAt(row)) {
    const unsigned c = nextBit(rowAt(row)->occupied, column);
    if (c < 64) return leastOf({row, c});
  }
  const unsigned r = nextRow(row + 1);
  if (r >= kRows) return nullptr;
  return leastOf({r, firstBit(rowAt(r)->occupied)});
}

Block* FreeIndex::bestOfMixed(std::uint32_t granules) const noexcept {
  const Bin bin = binOf(granules);
  if (const Row* const r = rowAt(bin.row)) {
    Block* own = size_tree::leastAtLeast(r->bins[bin.column], granules);
    if (own) return own;
  }
  return firstFrom(bin.row, bin.column + 1);
}

Block* FreeIndex::after(const Block& best) const noexcept {
  const Bin bin = binOf(best.granules);
  Block* const next = exact(bin) ? address_heap::second(best) : size_tree::next(best);
  return next ? next : firstFrom(bin.row, bin.column + 1);
}

Block* FreeIndex::ofLargestBin() const noexcept {
  for (unsigned word = 2; word-- > 0;) {
    if (occupied_[word] == 0) continue;
    const Row& r = *rowAt(word * 64 + 63 - unsigned(std::countl_zero(occupied_[word])));
    return r.bins[63 - unsigned(std::countl_zero(r.occupied))];
  }
  return nullptr;
}

Block* FreeIndex::largest() const noexcept {
  Block* root = ofLargestBin();
  return root && !exact(binOf(root->granules)) ? size_tree::last(root) : root;
}

}  // namespace cistern
