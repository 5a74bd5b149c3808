#include "allocator/engine/heap.hpp"

#include <algorithm>

#include "allocator/base/check.hpp"
#include "allocator/engine/cache/held_caches.hpp"

namespace cistern {

Block* Heap::allocate(const Request& request) {
  Block* block = layout(request.kind).allocate(request.granules);
  if (block == nullptr) return nullptr;
  begin(*block, request);
  return block;
}

Block* Heap::allocateFrom(Block& free, const Request& request) {
  Block* block = layout(request.kind).allocateFrom(free, request.granules);
  begin(*block, request);
  return block;
}

Block* Heap::allocateAt(Block& free, Address at, const Request& request) {
  Block* block = layout(request.kind).allocateAt(free, at, request.granules);
  begin(*block, request);
  return block;
}

bool Heap::moveTo(Pool& pool, Stream stream) noexcept {
  const MutexLock lock(mutex_);
  if (small_.segmentBytes() + large_.segmentBytes() != 0 || leaving != 0) return false;
  if (completion.busy || completion.under_way != 0) return false;
  completion.completed = endEpoch();
  completion.freed = false;
  completion.free_marks = 0;
  recent.forget(completion.completed);
  hits_unpolled = 0;
  pages_moved = false;
  recorded = 0;
  low_water = {};
  small_.rules() = pool.rules().splitRules(SizeKind::kSmall);
  large_.rules() = pool.rules().splitRules(SizeKind::kLarge);
  pool_.store(&pool, std::memory_order_release);
  stream_.store(stream, std::memory_order_relaxed);
  setGone(false);
  followHeap(*this);
  return true;
}

void Heap::release(Block& block, std::uint64_t tick, std::uint32_t at, bool held) noexcept {
  if (withdrawn_) [[unlikely]]
    offerAgain();
  HeapSegment& segment = segmentOf(block);
  const SizeKind kind = segment.kind;
  const bool pending = block.state() == BlockState::kPending;
  Counts gone;
  if (held && !pending) gone = Counts::block(block.bytes(), ownership::requested(block), -1);
  if (pending) totals_.countPending(kind, block.bytes(), -1, false);
  completion.freed = true;
  if (kind == SizeKind::kLarge) noteFreed(block, at);
  const Block* whole = layout(kind).release(block, at);
  if (whole->spansSegment()) segment.setIdleSince(tick);
  count(kind, gone);
}

void Heap::noteFreed(const Block& block, std::uint32_t at) noexcept {
  completion.freed_bytes += block.bytes();
  if (onPages()) recent.note(*block.segment, block.address(), block.end(), at);
}

std::vector<Block*> Heap::incomplete() {
  std::vector<Block*> blocks;
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    for (Segment* s = layout(kind).segments(); s; s = s->next) {
      for (Block* b = s->first; b; b = b->next) {
        if (b->isFree() && b->epoch > completion.completed) blocks.push_back(b);
      }
    }
  }
  return blocks;
}

void Heap::noteFreeComplete() noexcept {
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    for (Segment* s = layout(kind).segments(); s; s = s->next) {
      for (Block* b = s->first; b; b = b->next) {
        if (b->isFree()) b->epoch = std::min(b->epoch, completion.completed);
      }
    }
  }
}

Block* Heap::fill(SizeKind kind, Block& hole, Address from, Address to, std::uint32_t at) noexcept {
  if (withdrawn_) offerAgain();
  completion.freed = true;
  if (kind == SizeKind::kLarge) recent.note(*hole.segment, from, to, at);
  Block* const free = layout(kind).fill(hole, from, to, at);
  count(kind, {});
  return free;
}

Block* Heap::punch(SizeKind kind, Block& free, Address from, Address to) noexcept {
  Block* const hole = layout(kind).punch(free, from, to);
  count(kind, {});
  return hole;
}

void Heap::add(HeapSegment& segment, From from) {
  if (withdrawn_) offerAgain();
  const SizeKind kind = segment.kind;
  layout(kind).add(segment, from == From::kDevice ? 0 : epoch);
  segment.heap.store(this, std::memory_order_release);
  count(kind, {});
  countBacking(kind, segment.bytes, +1, from == From::kDevice);
  if (from == From::kRefused) totals_.countBack(kind, segment.bytes);
  if (from != From::kDevice) completion.freed = true;  // its memory counts as freed now
}

void Heap::remove(HeapSegment& segment, bool returned) noexcept {
  layout(segment.kind).remove(segment);
  segment.heap.store(nullptr, std::memory_order_release);
  count(segment.kind, {});
  countBacking(segment.kind, segment.bytes, -1, returned);
}

std::uint32_t Heap::endEpoch() noexcept {
  if (epoch == UINT32_MAX) renumberEpochs();
  return epoch++;
}

// All that an epoch's number says is whether it is complete. What is under way marks nothing any
// more.
void Heap::renumberEpochs() noexcept {
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    for (Segment* s = layout(kind).segments(); s; s = s->next) {
      for (Block* b = s->first; b; b = b->next) {
        if (b->isFree()) b->epoch = b->epoch <= completion.completed ? 0 : kOldEpochs;
      }
    }
  }
  completion.completed = 0;
  completion.freed = true;
  for (Mark& mark : completion.marks) mark.epoch = 0;
  recent.forget(kOldEpochs);
  epoch = kOldEpochs;
  ++generation;
}

void Heap::noteComplete(EpochMark mark) {
  if (mark.generation != generation) return;  // renumbered meanwhile: whoever asks again learns it
  completion.completed = std::max(completion.completed, mark.epoch);
}

std::size_t Heap::hostBytes() {
  return sizeof(Heap) + small_.hostBytes() + large_.hostBytes() + frees.hostBytes() +
         recent.hostBytes();
}

void Heap::audit() {
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    const Layout& own = layout(kind);
    own.audit();
    auditCounts(kind);
    for (Segment* s = own.segments(); s; s = s->next) {
      CISTERN_CHECK(static_cast<HeapSegment*>(s)->heap.load() == this);
    }
  }
  CISTERN_CHECK(completion.completed < epoch);
  for (std::size_t i = 0; i < completion.under_way; ++i) {
    const bool last = i + 1 == completion.under_way;
    CISTERN_CHECK(completion.marks[i].epoch < (last ? epoch : completion.marks[i + 1].epoch + 1));
  }
}

}  // namespace cistern
