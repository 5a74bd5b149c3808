// The order inside a bin of mixed sizes: a treap of free blocks in best-fit order. The best fit may
// lie anywhere in such a bin. A heap would have to look past every block too small; the tree takes
// one walk down. Few blocks are that large, so a step more or less does not matter.
//
//   all left of b precede b, all right of b follow it
//   no child's priority is above its parent's
//
// Priorities are a hash of the address, so nothing is stored for them; the depth is logarithmic as
// in a tree built in random order. C. Aragon and R. Seidel, "Randomized search trees", 1989.
#pragma once

#include "allocator/layout/block.hpp"

namespace cistern::size_tree {

/// Best-fit order: by size, then by address.
inline bool precedes(const Block& a, const Block& b) {
  return a.granules != b.granules ? a.granules < b.granules : a.granule < b.granule;
}

/// Blocks of one tree have different addresses, and so different priorities.
inline std::uint64_t priority(const Block& b) {
  const std::uint64_t hash = (b.granule ^ (b.granule >> 21)) * 0x9E3779B97F4A7C15u;
  return (hash ^ (hash >> 32)) * 0xD6E8FEB86659FD93u;
}

/// Cuts the tree at `below` in two: the blocks before `block` and those after it, its new children.
inline void splitUnder(Block* block, Block* below) {
  Block *less_parent = block, *more_parent = block;
  Block **less = &block->links.left, **more = &block->links.right;
  while (below) {
    const bool precedes_it = precedes(*below, *block);
    Block**& place = precedes_it ? less : more;
    Block*& parent = precedes_it ? less_parent : more_parent;
    *place = below;
    below->links.parent = parent;
    parent = below;
    place = precedes_it ? &below->links.right : &below->links.left;
    below = *place;
  }
  *less = *more = nullptr;
}

inline void insert(Block*& root, Block* block) {
  Block** place = &root;
  Block* parent = nullptr;
  while (*place && priority(**place) > priority(*block)) {
    parent = *place;
    place = precedes(*parent, *block) ? &parent->links.right : &parent->links.left;
  }
  splitUnder(block, *place);
  block->links.parent = parent;
  *place = block;
}

/// Puts the block's children in its place, as one tree.
inline void remove(Block*& root, Block* block) {
  Block* parent = block->links.parent;
  Block** place = &root;
  if (parent) place = parent->links.left == block ? &parent->links.left : &parent->links.right;
  Block *left = block->links.left, *right = block->links.right;
  while (left && right) {
    const bool left_above = priority(*left) > priority(*right);
    Block*& top = left_above ? left : right;
    *place = top;
    top->links.parent = parent;
    parent = top;
    place = left_above ? &top->links.right : &top->links.left;
    top = *place;
  }
  *place = left ? left : right;
  if (*place) (*place)->links.parent = parent;
}

/// The first in order of at least `granules`, or null.
inline Block* leastAtLeast(Block* root, std::uint32_t granules) {
  Block* best = nullptr;
  for (Block* b = root; b;) {
    const bool fits = b->granules >= granules;
    if (fits) best = b;
    b = fits ? b->links.left : b->links.right;
  }
  return best;
}

/// The one that follows the block in order, or null.
inline Block* next(const Block& block) {
  if (Block* b = block.links.right) {
    while (b->links.left) b = b->links.left;
    return b;
  }
  const Block* below = &block;
  Block* above = block.links.parent;
  while (above && above->links.right == below) {
    below = above;
    above = above->links.parent;
  }
  return above;
}

inline Block* last(Block* root) {
  while (root && root->links.right) root = root->links.right;
  return root;
}

}  // namespace cistern::size_tree
