#include "interop/recording/formats/end_state.hpp"

#include <algorithm>
#include <map>

#include "interop/recording/backed_addresses.hpp"

namespace cistern::recording {
namespace {

// A living block.
struct Placed {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t stack = 0;
};

// Those of more than 0 bytes that have memory, by address.
std::vector<Placed> livingBlocks(const Recording& recording,
                                 const std::vector<BackingChange>& changes) {
  std::vector<Placed> all;
  for (const Event& event : recording.events) {
    if (event.kind == EventKind::kAllocate) {
      const Place& place = recording.placeOf(event);
      all.push_back({place.address, event.value, place.stack});
    } else if (event.kind == EventKind::kFree) {
      all[event.value].bytes = 0;
    }
  }
  std::vector<bool> away(all.size());
  for (const BackingChange& change : changes) away[change.allocation] = !change.backed;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (away[i]) all[i].bytes = 0;
  }
  std::erase_if(all, [](const Placed& block) { return block.bytes == 0; });
  std::sort(all.begin(), all.end(),
            [](const Placed& a, const Placed& b) { return a.address < b.address; });
  return all;
}

ReservedRanges rangesAtEnd(const Recording& recording) {
  ReservedRanges ranges;
  for (const Event& event : recording.events) {
    if (event.location == Location::kHost) continue;  // a picture of the device's memory
    applyTo(ranges, recording, event);
  }
  return ranges;
}

// The places of all blocks. Blocks of no bytes have no place.
Reserved rangeOfAll(const Recording& recording) {
  Reserved all;
  all.begin = ~std::uint64_t{0};
  for (const Event& event : recording.events) {
    if (event.kind != EventKind::kAllocate || event.value == 0) continue;
    const std::uint64_t begin = recording.placeOf(event).address;
    all.begin = std::min(all.begin, begin);
    all.end = std::max(all.end, endOf(begin, event.value));
  }
  return all;
}

// Pages that lie end to end are one segment, as PyTorch tells them.
std::vector<EndSegment> segmentsOf(const ReservedRanges& ranges) {
  std::vector<EndSegment> segments;
  for (const auto& [begin, range] : ranges.all()) {
    EndSegment* const last = segments.empty() ? nullptr : &segments.back();
    const bool joins = last && last->expandable && range.expandable &&
                       last->address + last->bytes == begin && last->pool == range.pool &&
                       last->stream == range.stream;
    if (joins) {
      last->bytes += range.end - range.begin;
    } else {
      segments.push_back(
          {begin, range.end - range.begin, range.pool, range.stream, range.expandable, {}});
    }
  }
  return segments;
}

// Blocks are 512 bytes and their multiples, as far as there is room.
void fill(EndSegment& segment, std::vector<Placed>::const_iterator& block,
          std::vector<Placed>::const_iterator last) {
  constexpr std::uint64_t kUnit = 512;
  const std::uint64_t end = segment.address + segment.bytes;
  std::uint64_t at = segment.address;
  for (; block != last && block->address < end; ++block) {
    if (block->address < at) continue;
    if (block->address > at) segment.blocks.push_back({block->address - at, 0, 0});
    const auto next = std::next(block);
    const std::uint64_t room =
        (next != last && next->address < end ? next->address : end) - block->address;
    const std::uint64_t rounded = (block->bytes + kUnit - 1) / kUnit * kUnit;
    const std::uint64_t bytes = std::min(rounded, room);
    if (bytes == 0) continue;
    segment.blocks.push_back({bytes, std::min(block->bytes, bytes), block->stack});
    at = block->address + bytes;
  }
  if (at < end) segment.blocks.push_back({end - at, 0, 0});
}

}  // namespace

std::vector<EndSegment> endState(const Recording& recording,
                                 const std::vector<BackingChange>& changes) {
  ReservedRanges ranges = rangesAtEnd(recording);
  if (!recording.has_reserved) ranges.add(rangeOfAll(recording));
  std::vector<EndSegment> segments = segmentsOf(ranges);
  const std::vector<Placed> blocks = livingBlocks(recording, changes);
  auto block = blocks.begin();
  for (EndSegment& segment : segments) fill(segment, block, blocks.end());
  return segments;
}

}  // namespace cistern::recording
