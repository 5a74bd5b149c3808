#include "allocator/engine/heap.hpp"

#include <algorithm>
#include <memory>

#include "allocator/base/check.hpp"

namespace cistern {
namespace {

std::int64_t signedBytes(std::uint64_t bytes) { return std::int64_t(bytes); }

}  // namespace

// A block in use remembers in `epoch` which capture it was allocated in.
void Heap::begin(Block& block, const Request& request) {
  block.use = holding::heapsOwn(request.bytes, request.stream);
  block.epoch = request.recorded_by;
}

Block* Heap::allocate(const Request& request) {
  Layout& from = layout(request.kind);
  const LayoutTotals before = from.totals();
  Block* block = from.allocate(request.grains);
  if (block == nullptr) return nullptr;
  begin(*block, request);
  countBlock(request.kind, *block, +1);
  countSplit(request.kind, before);
  return block;
}

Block* Heap::allocateFrom(Block& free, const Request& request) {
  Layout& from = layout(request.kind);
  const LayoutTotals before = from.totals();
  Block* block = from.allocateFrom(free, request.grains);
  begin(*block, request);
  countBlock(request.kind, *block, +1);
  countSplit(request.kind, before);
  return block;
}

Block* Heap::allocateAt(Block& free, Address at, const Request& request) {
  Layout& from = layout(request.kind);
  const LayoutTotals before = from.totals();
  Block* block = from.allocateAt(free, at, request.grains);
  begin(*block, request);
  countBlock(request.kind, *block, +1);
  countSplit(request.kind, before);
  return block;
}

void Heap::reissue(Block& block, const Request& request) noexcept {
  const SizeKind kind = segmentOf(block).kind;
  layout(kind).reissue(block);
  begin(block, request);
  countHeld(kind, block, +1);
}

void Heap::setAside(Block& free) noexcept {
  const SizeKind kind = segmentOf(free).kind;
  Layout& from = layout(kind);
  const LayoutTotals before = from.totals();
  from.setAside(free);
  begin(free, {0, free.grains, kind, stream(), nullptr, nullptr, 0});
  counters_.change(kind, Stat::kActive, 1);
  counters_.change(kind, Stat::kActiveBytes, signedBytes(free.bytes()));
  countSplit(kind, before);
}

bool Heap::moveTo(Pool& pool, Stream stream) noexcept {
  const MutexLock lock(mutex_);
  if (small_.totals().segment_bytes + large_.totals().segment_bytes != 0) return false;
  if (completion.busy || completion.under_way) return false;
  completion.completed = completion.marked = endEpoch();
  completion.freed = false;
  hits_unpolled = 0;
  pages_moved = recorded = false;
  tide = {};
  small_.rules() = pool.rules().splitRules(SizeKind::kSmall);
  large_.rules() = pool.rules().splitRules(SizeKind::kLarge);
  pool_.store(&pool, std::memory_order_relaxed);
  stream_.store(stream, std::memory_order_relaxed);
  setGone(false);
  return true;
}

void Heap::release(Block& block, std::uint64_t tick) noexcept {
  HeapSegment& segment = segmentOf(block);
  const SizeKind kind = segment.kind;
  Layout& to = layout(kind);
  const LayoutTotals before = to.totals();
  const bool held = block.state() == BlockState::kAllocated;
  if (held) countBlock(kind, block, -1);
  counters_.change(kind, Stat::kActive, -1);
  counters_.change(kind, Stat::kActiveBytes, -signedBytes(block.bytes()));
  const Block* whole = to.release(block, epoch);
  completion.freed = true;
  if (whole->spansSegment()) segment.setIdleSince(tick);
  countSplit(kind, before);
}

StreamUses Heap::retire(Block& block) noexcept {
  countBlock(segmentOf(block).kind, block, -1);
  layout(segmentOf(block).kind).retire(block);
  const std::unique_ptr<StreamUses> noted(static_cast<StreamUses*>(block.use.uses));
  block.use.uses = nullptr;
  StreamUses uses = noted ? std::move(*noted) : StreamUses{};
  if (block.use.stream != stream()) uses.push_back(block.use.stream);
  return uses;
}

void Heap::countHeld(SizeKind kind, const Block& block, int sign) {
  counters_.change(kind, Stat::kAllocation, sign);
  counters_.change(kind, Stat::kAllocatedBytes, sign * signedBytes(block.bytes()));
  counters_.change(kind, Stat::kRequestedBytes, sign * signedBytes(holding::requested(block)));
}

void Heap::countBlock(SizeKind kind, const Block& block, int sign) {
  countHeld(kind, block, sign);
  if (sign < 0) return;  // a block stays active until it is released
  counters_.change(kind, Stat::kActive, 1);
  counters_.change(kind, Stat::kActiveBytes, signedBytes(block.bytes()));
}

void Heap::countSplit(SizeKind kind, const LayoutTotals& before) {
  const LayoutTotals& now = layout(kind).totals();
  counters_.change(kind, Stat::kInactiveSplit,
                   signedBytes(now.split_free_blocks - before.split_free_blocks));
  counters_.change(kind, Stat::kInactiveSplitBytes,
                   signedBytes(now.split_free_bytes - before.split_free_bytes));
}

void Heap::countBacking(SizeKind kind, std::uint64_t bytes, int sign, bool real) {
  const auto count = [&](Stat stat, std::int64_t by) CISTERN_NO_TSA {
    real ? counters_.change(kind, stat, by) : counters_.move(kind, stat, by);
  };
  count(Stat::kSegment, sign);
  count(Stat::kReservedBytes, sign * signedBytes(bytes));
}

Block* Heap::fill(SizeKind kind, Block& hole, Address from, Address to, std::uint32_t at) noexcept {
  Layout& to_layout = layout(kind);
  const LayoutTotals before = to_layout.totals();
  Block* free = to_layout.fill(hole, from, to, at);
  completion.freed = true;
  countSplit(kind, before);
  return free;
}

Block* Heap::punch(SizeKind kind, Block& free, Address from, Address to) noexcept {
  Layout& of = layout(kind);
  const LayoutTotals before = of.totals();
  Block* hole = of.punch(free, from, to);
  countSplit(kind, before);
  return hole;
}

void Heap::add(HeapSegment& segment, bool grown) {
  layout(segment.kind).add(segment, grown ? 0 : epoch);
  segment.heap.store(this, std::memory_order_release);
  countBacking(segment.kind, segment.bytes, +1, grown);
  if (!grown) completion.freed = true;  // its memory counts as freed now
}

void Heap::remove(HeapSegment& segment) noexcept {
  layout(segment.kind).remove(segment);
  segment.heap.store(nullptr, std::memory_order_release);
  countBacking(segment.kind, segment.bytes, -1, true);
}

std::uint32_t Heap::endEpoch() noexcept {
  if (epoch == UINT32_MAX) renumberEpochs();
  return epoch++;
}

// All that an epoch's number says is whether it is complete, marked, or neither.
void Heap::renumberEpochs() noexcept {
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    for (Segment* s = layout(kind).segments(); s; s = s->next) {
      for (Block* b = s->first; b; b = b->next) {
        if (!b->isFree()) continue;
        b->epoch = b->epoch <= completion.completed ? 0 : b->epoch <= completion.marked ? 1 : 2;
      }
    }
  }
  completion.completed = 0;
  completion.marked = 1;
  epoch = kOldEpochs;
  ++generation;
}

void Heap::noteComplete(EpochMark mark) {
  if (mark.generation != generation) return;  // renumbered meanwhile: whoever asks again learns it
  completion.completed = std::max(completion.completed, mark.epoch);
  completion.marked = std::max(completion.marked, mark.epoch);
}

std::size_t Heap::hostBytes() {
  return sizeof(Heap) + small_.hostBytes() + large_.hostBytes() + frees.hostBytes();
}

void Heap::audit() {
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    const Layout& own = layout(kind);
    own.audit();
    const LayoutTotals& t = own.totals();
    const StatArray& now = counters_.current[std::size_t(kind)];
    const auto is = [&](Stat stat, std::uint64_t value) {
      CISTERN_CHECK(now[std::size_t(stat)] == signedBytes(value));
    };
    // Pages that the device would not take back are counted too.
    CISTERN_CHECK(now[std::size_t(Stat::kReservedBytes)] >= signedBytes(t.segment_bytes));
    is(Stat::kActive, t.busy_blocks);
    is(Stat::kActiveBytes, t.busy_bytes);
    is(Stat::kInactiveSplit, t.split_free_blocks);
    is(Stat::kInactiveSplitBytes, t.split_free_bytes);
    for (Segment* s = own.segments(); s; s = s->next) {
      CISTERN_CHECK(static_cast<HeapSegment*>(s)->heap.load() == this);
    }
  }
  CISTERN_CHECK(completion.completed <= completion.marked && completion.marked < epoch);
}

}  // namespace cistern
