// A list of blocks that are in no bin, in no order, linked by links.left and links.right.
#pragma once

#include "allocator/layout/block.hpp"

namespace cistern {

class BlockList {
 public:
  Block* first() const { return first_; }
  /// Pre: the block is in no list and in no bin.
  void push(Block& block) noexcept {
    block.links = {nullptr, nullptr, first_};
    if (first_) first_->links.left = &block;
    first_ = &block;
  }
  void remove(Block& block) noexcept {
    (block.links.left ? block.links.left->links.right : first_) = block.links.right;
    if (block.links.right) block.links.right->links.left = block.links.left;
  }

 private:
  Block* first_ = nullptr;
};

}  // namespace cistern
