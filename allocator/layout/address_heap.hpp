// The order inside a bin of one size: a leftist heap of free blocks, lowest address first. The best
// block is at the root, found without a search. Inserting and removing touch a logarithm of the bin
// at worst. As a rule they touch two or three blocks (right spines are short). A list would have to
// choose between order and speed; a balanced tree pays its depth on every insert.
//
//   rank(b) == 1 + rank(right(b)) <= 1 + rank(left(b)),  rank(null) == 0
//   no child precedes its parent
//
// Leftist heaps: C. A. Crane, "Linear lists and priority queues as balanced binary trees", 1972.
#pragma once

#include <utility>

#include "allocator/layout/block.hpp"

namespace cistern::address_heap {

inline bool precedes(const Block& a, const Block& b) { return a.granule < b.granule; }

inline unsigned rankOf(const Block* b) { return b ? unsigned(b->rank) : 0; }

/// Restores the rank invariant of one block whose children are correct. True if its rank changed.
inline bool settle(Block* b) {
  if (rankOf(b->links.left) < rankOf(b->links.right)) std::swap(b->links.left, b->links.right);
  const unsigned rank = rankOf(b->links.right) + 1;
  const bool changed = b->rank != rank;
  b->rank = rank & 0xffu;
  return changed;
}

/// The heap of both heaps' blocks. The caller sets the result's parent. Recursion is as deep as the
/// right spines are long: at most 2 log2 of the bin.
inline Block* merge(Block* a, Block* b) {
  if (a == nullptr) return b;
  if (b == nullptr) return a;
  if (precedes(*b, *a)) std::swap(a, b);
  a->links.right = merge(a->links.right, b);
  a->links.right->links.parent = a;
  settle(a);
  return a;
}

/// The second in order; null when there is none. Pre: `first` is the root.
inline Block* second(const Block& first) {
  Block *a = first.links.left, *b = first.links.right;
  if (a == nullptr || b == nullptr) return a ? a : b;
  return precedes(*a, *b) ? a : b;
}

/// Settles upwards from `b` for as long as ranks change.
inline void settleUp(Block* b) {
  while (b && settle(b)) b = b->links.parent;
}

/// Hangs the block into the right spine at its place; what was below becomes its left child.
inline void insert(Block*& root, Block* block) {
  Block* parent = nullptr;
  Block* below = root;
  while (below && precedes(*below, *block)) {
    parent = below;
    below = below->links.right;
  }
  block->links = {parent, below, nullptr};
  block->rank = 1;
  if (below) below->links.parent = block;
  (parent ? parent->links.right : root) = block;
  settleUp(parent);
}

inline void remove(Block*& root, Block* block) {
  Block* parent = block->links.parent;
  Block* rest = merge(block->links.left, block->links.right);
  if (rest) rest->links.parent = parent;
  Block*& place = parent == nullptr             ? root
                  : parent->links.left == block ? parent->links.left
                                                : parent->links.right;
  place = rest;
  settleUp(parent);
}

}  // namespace cistern::address_heap
