#include "allocator/layout/block_pool.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace cistern {

BlockPool::~BlockPool() {
  for (const Slab& slab : slabs_) HostAllocator<Block>().deallocate(slab.records, slab.count);
}

Block* BlockPool::fresh() {
  if (untouched_ == 0) grow();
  const Slab& slab = slabs_.back();
  return new (&slab.records[slab.count - untouched_--]) Block;
}

std::size_t BlockPool::countInUse() const {
  std::size_t spare = untouched_;
  for (const Block* block = spare_; block; block = block->next) ++spare;
  return records_ - spare;
}

void BlockPool::makeSpare(std::size_t count) {
  Block* taken = nullptr;
  const auto giveBack = [&] {
    while (taken) give(std::exchange(taken, taken->next));
  };
  try {
    for (; count > 0; --count) {
      Block* block = take();
      block->next = std::exchange(taken, block);
    }
  } catch (...) {
    giveBack();
    throw;
  }
  giveBack();
}

// Slabs grow by a quarter of what there is, so that a small heap stays small and a large one seldom
// grows, and at most a fifth of the records is ahead of need. The largest is one huge page.
void BlockPool::grow() {
  constexpr std::size_t kMost = HostAllocator<Block>::kHugePage / sizeof(Block);
  const std::size_t count = std::clamp<std::size_t>(records_ / 4, 16, kMost);
  slabs_.reserve(slabs_.size() + 1);
  slabs_.push_back({HostAllocator<Block>().allocate(count), count});
  records_ += count;
  untouched_ = count;
}

}  // namespace cistern
