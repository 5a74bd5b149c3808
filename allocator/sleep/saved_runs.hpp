// Which bytes are copied, in which pieces. Makes no call, and knows no heap.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/engine/ground/segment_map.hpp"
#include "allocator/sleep/sleep_memory.hpp"
#include "cistern/device.hpp"

namespace cistern {

/// Addresses of the device whose bytes are in the host's memory.
struct SavedRun {
  Address from = 0;
  std::uint64_t bytes = 0;
  std::byte* at = nullptr;

  Address to() const { return from + bytes; }
  BusCopy asCopy() const { return {from, at, std::size_t(bytes)}; }
};

inline std::uint64_t bytesOfRanges(const std::vector<AddressRange>& ranges) {
  std::uint64_t bytes = 0;
  for (const AddressRange& range : ranges) bytes += range.to - range.from;
  return bytes;
}

/// Ranges that touch or overlap as one. Pre: in order.
std::vector<AddressRange> merged(const std::vector<AddressRange>& ranges);
/// What both cover. Pre: each is in order and disjoint. Post: so is the result.
std::vector<AddressRange> intersection(const std::vector<AddressRange>& one,
                                       const std::vector<AddressRange>& other);
/// Joins ranges over small gaps, the smallest first: one large copy takes less time than two small
/// ones. All gaps together have at most a twentieth of the bytes of `live`, and each lies in one
/// range of `within`. Pre: both are merged; `live` lies in `within`.
std::vector<AddressRange> joinedOverGaps(const std::vector<AddressRange>& live,
                                         const std::vector<AddressRange>& within);
/// Places the ranges in the chunks, one after another. A range that does not fit into the rest of a
/// chunk is in two. Pre: the chunks have room for all.
std::vector<SavedRun> placedIn(const PinnedChunks& chunks, const std::vector<AddressRange>& ranges);
/// The parts of the runs that lie in the ranges. Pre: both are in order.
std::vector<SavedRun> partsIn(const std::vector<SavedRun>& runs,
                              const std::vector<AddressRange>& ranges);

}  // namespace cistern
