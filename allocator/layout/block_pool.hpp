// Hands out block records and takes them back. Slabs only grow, and live as long as the pool, so a
// stale pointer to a record always points at a record.
// No lock: the owner (a heap) serialises.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "allocator/layout/block.hpp"

namespace cistern {

class BlockPool {
 public:
  /// A spare record, contents indeterminate but for state kUnused. May allocate host memory; throws
  /// std::bad_alloc, changing nothing.
  Block* take() {
    if (spare_ == nullptr) grow();
    Block* block = spare_;
    spare_ = block->next;
    return block;
  }
  void give(Block* block) noexcept {
    block->setState(BlockState::kUnused);
    block->next = spare_;
    spare_ = block;
  }
  /// Makes sure that the next `count` (<= 4) takes cannot fail.
  void prepare(unsigned count) {
    const Block* block = spare_;
    for (unsigned i = 0; i < count; ++i, block = block->next) {
      if (block == nullptr) return grow();
    }
  }
  std::size_t hostBytes() const { return records_ * sizeof(Block); }

 private:
  void grow();

  Block* spare_ = nullptr;  ///< spare records, linked by next
  std::size_t records_ = 0;
  std::vector<std::unique_ptr<Block[]>> slabs_;
};

}  // namespace cistern
