#include "interop/command/overflow/bus_meter.hpp"

#include <algorithm>

namespace cistern::command {

void* BusMeter::allocate(std::size_t bytes, Stream stream) {
  void* const pointer = policy_.allocate(bytes, stream);
  if (pointer == nullptr) return pointer;
  Block& block = blocks_[pointer] = {bytes, born_++};
  block.in_host = std::min<std::uint64_t>(bytes, policy_.hostBytesIn(pointer));
  pay(block, 2 * block.in_host, 0);
  return pointer;
}

void BusMeter::free(const Held& held) {
  const auto found = blocks_.find(held.pointer);
  Block& block = found->second;
  if (!over_) {
    lookAt(held.pointer, block);
    if (born_ - block.born < kShortLife) iterations_.back().of_short_lives += block.paid;
  }
  blocks_.erase(found);
  policy_.free(held);
}

void BusMeter::stepped(const Step&) {
  ++events_;
  if (iterations_.size() < starts_.size() && events_ == starts_[iterations_.size()])
    beginIteration();
}

void BusMeter::look() {
  over_ = begun_;
  begun_ = true;
  for (auto& [pointer, block] : blocks_) lookAt(pointer, block);
}

// The blocks that settle moves are in its figure already.
void BusMeter::beginIteration() {
  for (auto& [pointer, block] : blocks_) lookAt(pointer, block);
  const std::uint64_t moved = policy_.settle();
  iterations_.push_back({0, moved, 0});
  for (auto& [pointer, block] : blocks_) {
    block.in_host = std::min(block.bytes, policy_.hostBytesIn(pointer));
    pay(block, 2 * block.in_host, 0);
  }
}

void BusMeter::pay(Block& block, std::uint64_t used, std::uint64_t moved) {
  block.paid += used + moved;
  iterations_.back() += {used, moved, 0};
}

// A block that was moved to the host after it was written is copied there, and read there once.
void BusMeter::lookAt(const void* pointer, Block& block) {
  const std::uint64_t before = block.in_host;
  block.in_host = std::min(block.bytes, policy_.hostBytesIn(pointer));
  if (block.in_host > before) pay(block, block.in_host - before, block.in_host - before);
  if (block.in_host < before) pay(block, 0, before - block.in_host);
}

}  // namespace cistern::command
