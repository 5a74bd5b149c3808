// What a heap counts, and blocks that are in use without being the program's.
#include <memory>

#include "allocator/base/check.hpp"
#include "allocator/engine/heap.hpp"

namespace cistern {

void Heap::count(SizeKind kind, const Counts& held) noexcept {
  const Layout& own = layout(kind);
  const Layout::SplitFree& rises = own.splitFreeRises();
  const Counted now{{std::int64_t(own.splitFreeBlocks()), std::int64_t(own.splitFreeBytes())},
                    {std::int64_t(rises.blocks), std::int64_t(rises.bytes)}};
  const Counted before = std::exchange(counted_[std::size_t(kind)], now);
  Counts by = held, taken = held.blocks > 0 ? held : Counts{};
  by.split_blocks = now.now.blocks - before.now.blocks;
  by.split_bytes = now.now.bytes - before.now.bytes;
  taken.split_blocks = now.rises.blocks - before.rises.blocks;
  taken.split_bytes = now.rises.bytes - before.rises.bytes;
  totals_.count(kind, by, taken);
}

StreamUses Heap::setPending(Block& block) noexcept {
  const SizeKind kind = segmentOf(block).kind;
  const std::uint64_t requested = ownership::requested(block);
  layout(kind).setPending(block);
  count(kind, Counts::block(block.bytes(), requested, -1));
  totals_.countPending(kind, block.bytes(), +1, false);
  const std::unique_ptr<StreamUses> noted(static_cast<StreamUses*>(block.use.uses));
  block.use.uses = nullptr;
  StreamUses uses = noted ? std::move(*noted) : StreamUses{};
  if (block.use.stream != stream()) uses.add(block.use.stream);
  return uses;
}

void Heap::reissue(Block& block, const Request& request) noexcept {
  const SizeKind kind = segmentOf(block).kind;
  layout(kind).reissue(block);
  totals_.countPending(kind, block.bytes(), -1, true);
  begin(block, request);
}

void Heap::setAside(Block& free) noexcept {
  const SizeKind kind = segmentOf(free).kind;
  layout(kind).setAside(free);
  free.use = ownership::heapsOwn(0, stream());
  free.epoch = 0;
  count(kind, {});
  totals_.countPending(kind, free.bytes(), +1, true);
}

void Heap::countBacking(SizeKind kind, std::uint64_t bytes, int sign, bool real) {
  BackingCount& own = backed_[std::size_t(kind)];
  own.pieces += std::uint64_t(sign);
  own.bytes += std::uint64_t(sign) * bytes;
  if (real) totals_.countBacking(kind, sign, sign * std::int64_t(bytes));
}

StatArray Heap::usage(SizeKind kind) {
  const Layout& own = layout(kind);
  StatArray all{};
  const auto at = [&](Stat stat) -> std::int64_t& { return all[std::size_t(stat)]; };
  for (const Segment* s = own.segments(); s; s = s->next) {
    for (const Block* b = s->first; b; b = b->next) {
      if (b->state() != BlockState::kAllocated) continue;
      at(Stat::kAllocation) += 1;
      at(Stat::kAllocatedBytes) += std::int64_t(b->bytes());
      at(Stat::kRequestedBytes) += std::int64_t(ownership::requested(*b));
    }
  }
  at(Stat::kActive) = std::int64_t(own.busyBlocks());
  at(Stat::kActiveBytes) = std::int64_t(own.busyBytes());
  at(Stat::kInactiveSplit) = std::int64_t(own.splitFreeBlocks());
  at(Stat::kInactiveSplitBytes) = std::int64_t(own.splitFreeBytes());
  at(Stat::kSegment) = std::int64_t(backed_[std::size_t(kind)].pieces);
  at(Stat::kReservedBytes) = std::int64_t(backed_[std::size_t(kind)].bytes);
  return all;
}

void Heap::auditCounts(SizeKind kind) {
  const Layout& own = layout(kind);
  const Counted& counted = counted_[std::size_t(kind)];
  CISTERN_CHECK(counted.now.blocks == std::int64_t(own.splitFreeBlocks()));
  CISTERN_CHECK(counted.now.bytes == std::int64_t(own.splitFreeBytes()));
  // Pages that the device would not take back are counted too.
  CISTERN_CHECK(backed_[std::size_t(kind)].bytes >= own.segmentBytes());
}

}  // namespace cistern
