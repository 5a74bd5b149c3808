#include "allocator/layout/free_index.hpp"

#include <vector>

#include "allocator/base/check.hpp"
#include "allocator/layout/address_heap.hpp"

namespace cistern {
namespace {

// The least block of at least `grains` in one heap of mixed sizes. Blocks too small sit at the top;
// below each the answer may be, so both children are looked at, up to the budget.
Block* leastAtLeast(Block* root, std::uint32_t grains) {
  std::array<Block*, FreeIndex::kSearchBudget + 1> stack;
  unsigned depth = 0, looked = 0;
  Block* best = nullptr;
  stack[depth++] = root;
  while (depth > 0 && looked++ < FreeIndex::kSearchBudget) {
    Block* b = stack[--depth];
    if (b->grains >= grains) {
      if (best == nullptr || address_heap::precedes(*b, *best)) best = b;
      continue;
    }
    for (Block* child : {b->links.left, b->links.right}) {
      if (child && depth < stack.size()) stack[depth++] = child;
    }
  }
  return best;
}

}  // namespace

FreeIndex::Row& FreeIndex::row(unsigned index) {
  if (!rows_[index]) {
    rows_[index] = std::make_unique<Row>();
    ++made_rows_;
  }
  return *rows_[index];
}

void FreeIndex::insert(Block& block) {
  CISTERN_ASSERT(block.isFree() && block.grains > 0);
  const Bin bin = binOf(block.grains);
  Row& r = row(bin.row);
  address_heap::insert(r.bins[bin.column], &block);
  r.occupied |= std::uint64_t{1} << bin.column;
  occupied_[bin.row / 64] |= std::uint64_t{1} << (bin.row % 64);
  ++blocks_;
  grains_ += block.grains;
}

void FreeIndex::remove(Block& block) noexcept {
  const Bin bin = binOf(block.grains);
  Row& r = *rows_[bin.row];
  address_heap::remove(r.bins[bin.column], &block);
  --blocks_;
  grains_ -= block.grains;
  if (r.bins[bin.column] != nullptr) return;
  r.occupied &= ~(std::uint64_t{1} << bin.column);
  if (r.occupied == 0) occupied_[bin.row / 64] &= ~(std::uint64_t{1} << (bin.row % 64));
}

unsigned FreeIndex::nextRow(unsigned from) const noexcept {
  if (from < 64) {
    const unsigned r = nextBit(occupied_[0], from);
    if (r < 64) return r;
    from = 64;
  }
  return 64 + nextBit(occupied_[1], from - 64);  // 128 when there is none
}

Block* FreeIndex::firstFrom(unsigned row, unsigned column) const noexcept {
  if (row < kRows && rows_[row]) {
    const unsigned c = nextBit(rows_[row]->occupied, column);
    if (c < 64) return rows_[row]->bins[c];
  }
  const unsigned r = nextRow(row + 1);
  if (r >= kRows) return nullptr;
  return rows_[r]->bins[nextBit(rows_[r]->occupied, 0)];
}

Block* FreeIndex::bestFit(std::uint32_t grains) const noexcept {
  const Bin bin = binOf(grains);
  if (bin.row < kExactRows) return firstFrom(bin.row, bin.column);
  if (rows_[bin.row] && rows_[bin.row]->bins[bin.column]) {
    Block* own = leastAtLeast(rows_[bin.row]->bins[bin.column], grains);
    if (own) return own;
  }
  return firstFrom(bin.row, bin.column + 1);
}

Block* FreeIndex::ofLargestBin() const noexcept {
  for (unsigned word = 2; word-- > 0;) {
    if (occupied_[word] == 0) continue;
    const Row& r = *rows_[word * 64 + 63 - unsigned(std::countl_zero(occupied_[word]))];
    return r.bins[63 - unsigned(std::countl_zero(r.occupied))];
  }
  return nullptr;
}

namespace {

// An explicit stack: left children may hang as deep as the bin is large.
void auditHeap(const Block* root, FreeIndex::Bin bin, std::size_t& blocks, std::uint64_t& grains) {
  std::vector<const Block*> stack;
  if (root) stack.push_back(root);
  CISTERN_CHECK(root == nullptr || root->links.parent == nullptr);
  while (!stack.empty()) {
    const Block* b = stack.back();
    stack.pop_back();
    const FreeIndex::Bin own = FreeIndex::binOf(b->grains);
    CISTERN_CHECK(b->isFree() && own.row == bin.row && own.column == bin.column);
    CISTERN_CHECK(b->rank == address_heap::rankOf(b->links.right) + 1);
    CISTERN_CHECK(b->rank <= address_heap::rankOf(b->links.left) + 1);
    ++blocks;
    grains += b->grains;
    for (const Block* child : {b->links.left, b->links.right}) {
      if (child == nullptr) continue;
      CISTERN_CHECK(child->links.parent == b && !address_heap::precedes(*child, *b));
      stack.push_back(child);
    }
  }
}

}  // namespace

void FreeIndex::audit() const {
  std::size_t blocks = 0;
  std::uint64_t grains = 0;
  for (unsigned r = 0; r < kRows; ++r) {
    const bool marked = (occupied_[r / 64] >> (r % 64)) & 1;
    CISTERN_CHECK(marked == (rows_[r] && rows_[r]->occupied != 0));
    for (unsigned c = 0; rows_[r] && c < kColumns; ++c) {
      CISTERN_CHECK(((rows_[r]->occupied >> c) & 1) == (rows_[r]->bins[c] != nullptr));
      auditHeap(rows_[r]->bins[c], {r, c}, blocks, grains);
    }
  }
  CISTERN_CHECK(blocks == blocks_ && grains == grains_);
}

}  // namespace cistern
