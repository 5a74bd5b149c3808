#include "interop/command/peers/growing_blocks.hpp"

#include <algorithm>

#include "allocator/base/bytes.hpp"
#include "allocator/base/check.hpp"

namespace cistern::command {

GrowingBlocks::GrowingBlocks(Address begin, std::uint64_t bytes, std::uint64_t page_bytes,
                             Memory memory)
    : begin_(begin), page_bytes_(page_bytes), memory_(std::move(memory)) {
  CISTERN_CHECK(bytes > 0 && bytes % page_bytes == 0);
  list(blocks_.emplace(begin, Block{bytes, false, false}).first);
}

std::optional<Address> GrowingBlocks::reuse(std::uint64_t bytes) {
  auto best = free_.lower_bound({bytes, 0});
  if (best == free_.end()) return std::nullopt;
  for (auto next = std::next(best);
       next != free_.end() && roomOf(next->second) < roomOf(best->second); ++next) {
    best = next;
  }
  return take(blocks_.find(best->second), bytes);
}

std::optional<Address> GrowingBlocks::grow(std::uint64_t bytes) {
  const std::optional<At> found = growable(bytes);
  if (!found) return std::nullopt;
  At at = *found;
  if (!at->second.mapped && !mapFront(at, std::min(bytes, at->second.bytes))) return std::nullopt;
  while (at->second.bytes < bytes) {
    const std::uint64_t lacking = bytes - at->second.bytes;
    ++at;
    if (!mapFront(at, std::min(lacking, at->second.bytes))) return std::nullopt;
  }
  return take(at, bytes);
}

void GrowingBlocks::free(Address address) {
  const At at = blocks_.find(address);
  CISTERN_CHECK(at != blocks_.end() && at->second.allocated);
  at->second.allocated = false;
  list(merged(at));
}

void GrowingBlocks::release() {
  const FreeBlocks all = free_;
  for (const auto& [bytes, address] : all) unmapInside(address, bytes);
}

/// The size of the free block together with the unmapped space behind it.
std::uint64_t GrowingBlocks::roomOf(Address address) const {
  const auto at = blocks_.find(address);
  const auto next = std::next(at);
  const bool can_grow = next != blocks_.end() && !next->second.mapped;
  return at->second.bytes + (can_grow ? next->second.bytes : 0);
}

/// The lowest place from which nothing is allocated for so long: unmapped space, or the free block
/// right before it.
std::optional<GrowingBlocks::At> GrowingBlocks::growable(std::uint64_t bytes) {
  for (const Address address : unmapped_) {
    At at = blocks_.find(address);
    if (at != blocks_.begin() && !std::prev(at)->second.allocated) --at;
    if (reaches(at, bytes)) return at;
  }
  return std::nullopt;
}

bool GrowingBlocks::reaches(Blocks::const_iterator at, std::uint64_t bytes) const {
  for (std::uint64_t found = 0; at != blocks_.end() && !at->second.allocated; ++at) {
    found += at->second.bytes;
    if (found >= bytes) return true;
  }
  return false;
}

/// Maps the first pages of an unmapped block, as many as `bytes` need; `at` becomes the free block
/// that has them. Pre: bytes <= the block's.
bool GrowingBlocks::mapFront(At& at, std::uint64_t bytes) {
  const std::uint64_t mapped = roundUp(bytes, page_bytes_);
  if (!memory_.map(at->first, mapped)) return false;
  unlist(at);
  if (mapped < at->second.bytes) list(cut(at, mapped));
  at->second.mapped = true;
  at = merged(at);
  list(at);
  return true;
}

/// Pre: a free mapped block.
void GrowingBlocks::unmapInside(Address address, std::uint64_t bytes) {
  const std::uint64_t offset = address - begin_;
  const std::uint64_t first = roundUp(offset, page_bytes_);
  const std::uint64_t end = roundDown(offset + bytes, page_bytes_);
  if (first >= end) return;
  memory_.unmap(begin_ + first, end - first);
  At at = blocks_.find(address);
  unlist(at);
  if (first > offset) {
    const At inside = cut(at, first - offset);
    list(at);
    at = inside;
  }
  if (end < offset + bytes) list(cut(at, end - first));
  at->second.mapped = false;
  list(merged(at));
}

/// Gives out the front of a listed free block; the rest of it stays free.
Address GrowingBlocks::take(At at, std::uint64_t bytes) {
  unlist(at);
  if (bytes < at->second.bytes) list(cut(at, bytes));
  at->second.allocated = true;
  return at->first;
}

/// Shortens an unlisted block; the rest of it is one of its own, not listed.
GrowingBlocks::At GrowingBlocks::cut(At at, std::uint64_t bytes) {
  Block rest = at->second;
  rest.bytes -= bytes;
  at->second.bytes = bytes;
  return blocks_.emplace(at->first + bytes, rest).first;
}

/// Joins an unlisted block that is not allocated with neighbours of its kind.
GrowingBlocks::At GrowingBlocks::merged(At at) {
  const auto joins = [](At a, At b) {
    return !a->second.allocated && !b->second.allocated && a->second.mapped == b->second.mapped;
  };
  if (const At next = std::next(at); next != blocks_.end() && joins(at, next)) {
    unlist(next);
    at->second.bytes += next->second.bytes;
    blocks_.erase(next);
  }
  if (at == blocks_.begin() || !joins(std::prev(at), at)) return at;
  const At before = std::prev(at);
  unlist(before);
  before->second.bytes += at->second.bytes;
  blocks_.erase(at);
  return before;
}

void GrowingBlocks::list(At at) {
  if (at->second.mapped) {
    free_.emplace(at->second.bytes, at->first);
  } else {
    unmapped_.insert(at->first);
  }
}

void GrowingBlocks::unlist(At at) {
  if (at->second.mapped) {
    free_.erase({at->second.bytes, at->first});
  } else {
    unmapped_.erase(at->first);
  }
}

void GrowingBlocks::audit() const {
  Address expected = begin_;
  std::size_t free = 0, unmapped = 0;
  const Block* before = nullptr;
  for (const auto& [address, block] : blocks_) {
    CISTERN_CHECK(address == expected && block.bytes > 0);
    CISTERN_CHECK(block.mapped || !block.allocated);
    CISTERN_CHECK(before == nullptr || before->allocated || block.allocated ||
                  before->mapped != block.mapped);
    if (!block.mapped) {
      CISTERN_CHECK((address - begin_) % page_bytes_ == 0 && block.bytes % page_bytes_ == 0);
      CISTERN_CHECK(unmapped_.count(address) == 1);
      ++unmapped;
    } else if (!block.allocated) {
      CISTERN_CHECK(free_.count({block.bytes, address}) == 1);
      ++free;
    }
    expected += block.bytes;
    before = &block;
  }
  CISTERN_CHECK(free == free_.size() && unmapped == unmapped_.size());
}

}  // namespace cistern::command
