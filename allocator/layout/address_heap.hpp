// The order inside a bin: a leftist heap of free blocks, smallest first, lowest address first among
// equals. The best block is at the root, found without a search; inserting and removing touch a
// logarithm of the bin at worst and two or three blocks as a rule (right spines are short). A list
// would have to choose between order and speed; a balanced tree pays its depth on every insert.
//
//   rank(b) == 1 + rank(right(b)) <= 1 + rank(left(b)),  rank(null) == 0
//   no child precedes its parent
//
// Leftist heaps: C. A. Crane, "Linear lists and priority queues as balanced binary trees", 1972.
#pragma once

#include <utility>

#include "allocator/layout/block.hpp"

namespace cistern::address_heap {

/// Best-fit order: by size, then by address.
inline bool precedes(const Block& a, const Block& b) {
  return a.grains != b.grains ? a.grains < b.grains : a.grain < b.grain;
}

inline unsigned rankOf(const Block* b) { return b ? unsigned(b->rank) : 0; }

/// Restores the rank invariant of one block whose children are right. True if its rank changed.
inline bool settle(Block* b) {
  if (rankOf(b->links.left) < rankOf(b->links.right)) std::swap(b->links.left, b->links.right);
  const unsigned rank = rankOf(b->links.right) + 1;
  const bool changed = b->rank != rank;
  b->rank = rank & 0xffu;
  return changed;
}

/// The heap of both heaps' blocks. The result's parent is for the caller to set.
/// Recursion is as deep as the right spines are long: at most 2 log2 of the bin.
inline Block* merge(Block* a, Block* b) {
  if (a == nullptr) return b;
  if (b == nullptr) return a;
  if (precedes(*b, *a)) std::swap(a, b);
  a->links.right = merge(a->links.right, b);
  a->links.right->links.parent = a;
  settle(a);
  return a;
}

inline void insert(Block*& root, Block* block) {
  block->links = {nullptr, nullptr, nullptr};
  block->rank = 1;
  root = merge(root, block);
  root->links.parent = nullptr;
}

inline void remove(Block*& root, Block* block) {
  Block* parent = block->links.parent;
  Block* rest = merge(block->links.left, block->links.right);
  if (rest) rest->links.parent = parent;
  if (parent == nullptr) {
    root = rest;
    return;
  }
  (parent->links.left == block ? parent->links.left : parent->links.right) = rest;
  for (Block* b = parent; b && settle(b);) b = b->links.parent;
}

}  // namespace cistern::address_heap
