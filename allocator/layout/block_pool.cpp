#include "allocator/layout/block_pool.hpp"

#include <algorithm>

namespace cistern {

// Slabs grow by a quarter of what there is, so that a small heap stays small and a large one seldom
// grows, and at most a fifth of the records is ahead of need.
void BlockPool::grow() {
  const std::size_t count = std::clamp<std::size_t>(records_ / 4, 16, 4096);
  slabs_.reserve(slabs_.size() + 1);
  std::unique_ptr<Block[]> slab(new Block[count]);
  for (std::size_t i = count; i-- > 0;) give(&slab[i]);
  slabs_.push_back(std::move(slab));
  records_ += count;
}

}  // namespace cistern
