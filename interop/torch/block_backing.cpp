#include "block_backing.hpp"

#include <algorithm>
#include <iterator>

namespace cistern_torch {

// ---- Ranges -------------------------------------------------------------------------------------

void BlockBacking::Ranges::add(Range range) {
  auto at = ends_.upper_bound(range.begin);
  if (at != ends_.begin() && std::prev(at)->second >= range.begin) --at;
  while (at != ends_.end() && at->first <= range.end) {
    range = {std::min(range.begin, at->first), std::max(range.end, at->second)};
    at = ends_.erase(at);
  }
  if (range.begin < range.end) ends_[range.begin] = range.end;
}

void BlockBacking::Ranges::remove(Range range) {
  std::vector<Range> cut;
  forEachIn(range, [&](std::uint64_t begin, std::uint64_t end) { cut.push_back({begin, end}); });
  for (const Range& part : cut) {
    const auto whole = std::prev(ends_.upper_bound(part.begin));
    const std::uint64_t begin = whole->first, end = whole->second;
    ends_.erase(whole);
    if (begin < part.begin) ends_[begin] = part.begin;
    if (part.end < end) ends_[part.end] = end;
  }
}

template <class Visit>
void BlockBacking::Ranges::forEachIn(Range range, Visit visit) const {
  auto at = ends_.upper_bound(range.begin);
  if (at != ends_.begin()) --at;
  for (; at != ends_.end() && at->first < range.end; ++at) {
    const std::uint64_t begin = std::max(at->first, range.begin);
    const std::uint64_t end = std::min(at->second, range.end);
    if (begin < end) visit(begin, end);
  }
}

bool BlockBacking::Ranges::anyIn(Range range) const {
  bool any = false;
  forEachIn(range, [&](std::uint64_t, std::uint64_t) { any = true; });
  return any;
}

// ---- Blocks -------------------------------------------------------------------------------------

template <class Visit>
void BlockBacking::forEachBlockIn(Range range, Visit visit) const {
  auto at = blocks_.lower_bound(range.begin);
  if (at != blocks_.begin() && std::prev(at)->second > range.begin) --at;
  for (; at != blocks_.end() && at->first < range.end; ++at) visit(at->first, at->second);
}

bool BlockBacking::add(std::uint64_t address, std::uint64_t bytes) {
  blocks_[address] = address + bytes;
  return !gone_.anyIn({address, address + bytes});
}

bool BlockBacking::remove(std::uint64_t address) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) return true;
  const bool whole = !gone_.anyIn({address, block->second});
  blocks_.erase(block);
  return whole;
}

BlockBacking::Addresses BlockBacking::takeAway(Range range) {
  Addresses lost;
  forEachBlockIn(range, [&](std::uint64_t begin, std::uint64_t end) {
    if (!gone_.anyIn({begin, end})) lost.push_back(begin);
  });
  gone_.add(range);
  return lost;
}

BlockBacking::Addresses BlockBacking::bringBack(Range range) {
  Addresses lacking;
  forEachBlockIn(range, [&](std::uint64_t begin, std::uint64_t end) {
    if (gone_.anyIn({begin, end})) lacking.push_back(begin);
  });
  gone_.remove(range);
  std::erase_if(lacking, [&](std::uint64_t block) {
    return gone_.anyIn({block, blocks_.at(block)});
  });
  return lacking;
}

std::vector<BlockBacking::Range> BlockBacking::partsOf(Range range) const {
  std::vector<Range> parts;
  gone_.forEachIn(range, [&](std::uint64_t begin, std::uint64_t end) {
    if (range.begin < begin) parts.push_back({range.begin, begin});
    range.begin = end;
  });
  if (range.begin < range.end) parts.push_back(range);
  return parts;
}

}  // namespace cistern_torch
