// The free blocks by size: two levels of bins, each level a bitmap.
//
// Below 4,096 granules (2 MiB) every size has a bin of its own, a heap with the lowest address at
// its root. So the best fit is the root of the first non-empty bin at or above the request. From
// there on an octave is cut into 64 bins of mixed sizes, each a tree in best-fit order. A row is 64
// bins; rows are made when first used. If the host has no memory for a row, its blocks are left out
// until it has: they are free, but no search finds them.
//
//   a free block is left out  <=>  there is no row for its size
//
// No lock: the owner (a heap) serialises. Read next: address_heap.hpp, size_tree.hpp.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/base/check.hpp"
#include "allocator/layout/block.hpp"

namespace cistern {

class FreeIndex {
 public:
  static constexpr unsigned kColumns = 64;
  static constexpr unsigned kExactRows = 64;                 ///< sizes below 64 * 64 granules
  static constexpr unsigned kRows = kExactRows + (32 - 12);  ///< and one row an octave above
  /// How many bins bestFitIf looks at. (The best fit itself needs no search.)
  static constexpr unsigned kSearchBudget = 64;

  struct Bin {
    unsigned row;
    unsigned column;
  };
  /// The bin of a size. Pre: granules > 0.
  static constexpr Bin binOf(std::uint32_t granules) {
    if (granules < kExactRows * kColumns) return {granules / kColumns, granules % kColumns};
    const unsigned octave = unsigned(std::bit_width(granules)) - 1;  // >= 12
    return {kExactRows + octave - 12, (granules >> (octave - 6)) % kColumns};
  }

  /// Pre: the block is free and in no index.
  void insert(Block& block) noexcept;
  /// Pre: the block is in this index.
  void remove(Block& block) noexcept;
  /// Whether some blocks cannot be found, as the host had no memory for their row.
  bool hasLeftOut() const { return left_out_.first() != nullptr; }
  /// Tries again to make rows for the blocks left out. True when any of them can be found now.
  bool listLeftOut() noexcept { return hasLeftOut() && listAllLeftOut(); }

  /// Starts loading what inserting a block of this size will touch. Pre: granules > 0.
  void prefetch(std::uint32_t granules) const noexcept {
    const Bin bin = binOf(granules);
    if (const Row* const r = rowAt(bin.row)) __builtin_prefetch(r->bins[bin.column], 1);
  }

  /// The smallest block of at least `granules`, the lowest address among equals; null for none.
  Block* bestFit(std::uint32_t granules) const noexcept;
  /// The next in that order, or null. Pre: bestFit has just returned the block.
  Block* after(const Block& best) const noexcept;
  /// The first in order among each bin's best that `accept`s, looking at no more than
  /// kSearchBudget bins.
  template <class Accept>
  Block* bestFitIf(std::uint32_t granules, Accept accept) const;
  /// A block of at least `granules` that is accepted, of the smallest bins that have one; null for
  /// none. Looks at as many as it must.
  template <class Accept>
  Block* findIf(std::uint32_t granules, Accept accept) const;
  /// Calls visit(Block&) for every block of at least `granules`, in no order. The visitor changes
  /// nothing here. Pre: granules >= kExactRows * kColumns.
  template <class Visit>
  void forEachAtLeast(std::uint32_t granules, Visit visit) const;
  /// The largest block, or one of them; null when empty.
  Block* largest() const noexcept;
  /// The root of the largest bin in use: all of the bin hang under it. Null when empty.
  Block* ofLargestBin() const noexcept;

  std::size_t blocks() const { return blocks_; }
  std::uint64_t bytes() const { return granules_ << kGranuleShift; }
  std::size_t hostBytes() const { return rows_.capacity() * sizeof(Row); }

  /// Walks everything; aborts on a broken invariant.
  void audit() const;

 private:
  struct Row {
    std::uint64_t occupied = 0;           ///< bit c set  <=>  bins[c] != nullptr
    std::array<Block*, kColumns> bins{};  ///< roots of heaps, or of trees above
  };

  /// Null while the row is not made. Valid until the next row is made.
  Row* rowAt(unsigned row) noexcept { return row_of_[row] ? &rows_[row_of_[row] - 1u] : nullptr; }
  const Row* rowAt(unsigned row) const noexcept {
    return row_of_[row] ? &rows_[row_of_[row] - 1u] : nullptr;
  }
  /// Whether all sizes of a bin are the same. Most such bins hold one block or none.
  static constexpr bool isExact(std::uint32_t granules) { return granules < kExactRows * kColumns; }
  static void hang(Block*& root, Block& block) noexcept;
  static void unhang(Block*& root, Block& block) noexcept;
  bool makeRow(unsigned index) noexcept;
  void insertFirst(Block& block) noexcept;
  bool listAllLeftOut() noexcept;
  void leaveOut(Block& block) noexcept;
  void takeLeftOut(Block& block) noexcept;
  void auditLeftOut(std::size_t& blocks, std::uint64_t& granules) const;
  Block* leastOf(Bin bin) const noexcept;
  Block* bestOfMixed(std::uint32_t granules) const noexcept;
  Block* firstFrom(unsigned row, unsigned column) const noexcept;
  unsigned nextRow(unsigned from) const noexcept;

  std::array<std::uint64_t, 2> occupied_{};   ///< bit r set  <=>  rowAt(r)->occupied != 0
  std::array<std::uint8_t, kRows> row_of_{};  ///< 1 + its place in rows_; 0 while it is not made
  std::vector<Row> rows_;                     ///< in the order in which they were made
  BlockList left_out_;
  std::size_t blocks_ = 0;
  std::uint64_t granules_ = 0;
};

/// The first set bit of `word` at or above `from`, or 64.
inline unsigned nextBit(std::uint64_t word, unsigned from) {
  if (from >= 64) return 64;
  word &= ~std::uint64_t{0} << from;
  return unsigned(std::countr_zero(word));
}

/// The first set bit. Pre: a bit is set. The compiler sees this precondition too: else it warns of
/// accesses behind the last bin.
inline unsigned firstBit(std::uint64_t word) {
  if (word == 0) __builtin_unreachable();
  return unsigned(std::countr_zero(word));
}

inline void FreeIndex::insert(Block& block) noexcept {
  CISTERN_ASSERT(block.isFree() && block.granules > 0);
  const Bin bin = binOf(block.granules);
  Row* const own = rowAt(bin.row);
  if (own == nullptr) [[unlikely]]
    return insertFirst(block);
  Row& r = *own;
  Block*& root = r.bins[bin.column];
  ++blocks_;
  granules_ += block.granules;
  if (root != nullptr) return hang(root, block);
  block.links = {};
  block.rank = 1;
  root = &block;
  r.occupied |= std::uint64_t{1} << bin.column;
  occupied_[bin.row / 64] |= std::uint64_t{1} << (bin.row % 64);
}

inline void FreeIndex::remove(Block& block) noexcept {
  const Bin bin = binOf(block.granules);
  Row* const own = rowAt(bin.row);
  if (own == nullptr) [[unlikely]]
    return takeLeftOut(block);
  Row& r = *own;
  Block*& root = r.bins[bin.column];
  --blocks_;
  granules_ -= block.granules;
  const Block::FreeLinks& links = block.links;
  if (links.parent != nullptr || links.left != nullptr || links.right != nullptr)
    return unhang(root, block);
  root = nullptr;
  r.occupied &= ~(std::uint64_t{1} << bin.column);
  if (r.occupied == 0) occupied_[bin.row / 64] &= ~(std::uint64_t{1} << (bin.row % 64));
}

inline Block* FreeIndex::bestFit(std::uint32_t granules) const noexcept {
  if (!isExact(granules)) [[unlikely]]
    return bestOfMixed(granules);
  const Bin bin = binOf(granules);
  if (const Row* const r = rowAt(bin.row)) {
    const std::uint64_t from = r->occupied & ~std::uint64_t{0} << bin.column;
    if (from != 0) return r->bins[unsigned(std::countr_zero(from))];
  }
  return firstFrom(bin.row + 1, 0);
}

namespace detail {

template <class Visit>
void visitTree(Block* root, std::uint32_t granules, Visit& visit) {
  for (; root; root = root->links.right) {  // trees are as deep as a logarithm, on the left too
    visitTree(root->links.left, granules, visit);
    if (root->granules >= granules) visit(*root);
  }
}

// Heaps may be deep on the left, and are as deep as a logarithm on the right.
template <class Accept>
Block* findInTree(Block* root, std::uint32_t granules, Accept& accept) {
  for (; root; root = root->links.left) {
    if (root->granules >= granules && accept(*root)) return root;
    if (Block* const found = findInTree(root->links.right, granules, accept)) return found;
  }
  return nullptr;
}

}  // namespace detail

template <class Accept>
Block* FreeIndex::findIf(std::uint32_t granules, Accept accept) const {
  for (Bin bin = binOf(granules); bin.row < kRows; bin = {bin.row + 1, 0}) {
    const Row* const r = rowAt(bin.row);
    if (r == nullptr || r->occupied == 0) continue;
    for (unsigned column = bin.column; column < kColumns; ++column) {
      if (Block* const found = detail::findInTree(r->bins[column], granules, accept)) return found;
    }
  }
  return nullptr;
}

template <class Visit>
void FreeIndex::forEachAtLeast(std::uint32_t granules, Visit visit) const {
  for (unsigned row = binOf(granules).row; row < kRows; ++row) {
    const Row* const r = rowAt(row);
    if (r == nullptr || r->occupied == 0) continue;
    for (Block* root : r->bins) detail::visitTree(root, granules, visit);
  }
}

template <class Accept>
Block* FreeIndex::bestFitIf(std::uint32_t granules, Accept accept) const {
  Block* block = bestFit(granules);
  for (unsigned tries = 0; block && tries < kSearchBudget; ++tries) {
    if (accept(*block)) return block;
    const Bin bin = binOf(block->granules);
    block = firstFrom(bin.row, bin.column + 1);
  }
  return nullptr;
}

}  // namespace cistern
