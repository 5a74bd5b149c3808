// Retired blocks, one behind the other through their own records: so that a list of them takes no
// host memory.
#pragma once

#include <utility>

#include "allocator/layout/block.hpp"

namespace cistern {

class RetiredBlocks {
 public:
  bool empty() const { return first_ == nullptr; }
  /// Pre: it is retired, and in no such list.
  void push(Block& block) noexcept {
    block.use.uses = first_;
    first_ = &block;
  }
  /// Null when there is none.
  Block* pop() noexcept {
    Block* const block = first_;
    if (block != nullptr) first_ = static_cast<Block*>(std::exchange(block->use.uses, nullptr));
    return block;
  }
  RetiredBlocks takeAll() noexcept { return std::exchange(*this, {}); }
  void append(RetiredBlocks others) noexcept {
    while (Block* block = others.pop()) push(*block);
  }

 private:
  Block* first_ = nullptr;
};

}  // namespace cistern
