// Hands out block records and takes them back. Slabs only grow, and live as long as this, so a
// stale pointer to a record always points at a record.
// No lock: the owner (a heap) serialises.
#pragma once

#include <cstddef>
#include <vector>

#include "allocator/layout/block.hpp"
#include "allocator/layout/host_memory.hpp"

namespace cistern {

class BlockSlabs {
 public:
  BlockSlabs() = default;
  ~BlockSlabs();
  BlockSlabs(const BlockSlabs&) = delete;
  BlockSlabs& operator=(const BlockSlabs&) = delete;

  /// A spare record, contents indeterminate but for state kUnused. May allocate host memory; throws
  /// std::bad_alloc, changing nothing.
  Block* take() {
    if (spare_ == nullptr) return fresh();
    Block* block = spare_;
    spare_ = block->next;
    return block;
  }
  void give(Block* block) noexcept {
    block->setState(BlockState::kUnused);
    block->next = spare_;
    spare_ = block;
  }
  /// Makes sure that taking or reserving `count` records cannot fail, while `in_use` are taken.
  /// Throws std::bad_alloc, changing nothing.
  void prepare(std::size_t count, std::size_t in_use) {
    const std::size_t spare = records_ - in_use - reserved_count_;
    if (spare < count) [[unlikely]]
      makeSpare(count - spare);
  }
  /// Keeps that many records back, until endReserve. Pre: prepared for.
  void reserve(std::size_t count) noexcept;
  void endReserve(std::size_t count) noexcept;
  /// Counts the records that are taken.
  std::size_t countInUse() const;
  std::size_t hostBytes() const { return records_ * sizeof(Block); }

 private:
  struct Slab {
    Block* records;
    std::size_t count;
  };
  Block* fresh();
  void makeSpare(std::size_t count);
  void grow(std::size_t least = 0);

  Block* spare_ = nullptr;     ///< records given back, linked by next; the last given first
  Block* reserved_ = nullptr;  ///< records kept back, linked in the same way
  std::size_t reserved_count_ = 0;
  std::size_t untouched_ = 0;  ///< records at the end of the last slab that were never taken
  std::size_t records_ = 0;
  std::vector<Slab> slabs_;
};

}  // namespace cistern
