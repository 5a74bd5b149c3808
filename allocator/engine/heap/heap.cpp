#include "allocator/engine/heap/heap.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/heap/heap_table.hpp"

namespace cistern {
namespace {

template <class Visit>
void forEachFree(Heap& heap, Visit visit) CISTERN_REQUIRES(heap.mutex()) {
  forEachBlock(heap, [&](Block& block) {
    if (block.isFree()) visit(block);
  });
}

// A block in use remembers in `epoch` which capture it was allocated in.
void begin(Heap& heap, Block& block, const Request& request) CISTERN_REQUIRES(heap.mutex()) {
  block.use = ownership::heapsOwn(request.bytes, request.stream);
  block.epoch = request.recorded_by;
  heap.layout(request.kind).count(Counts::block(block.bytes(), request.bytes, +1));
}

}  // namespace

// ---- Blocks ------------------------------------------------------------------------------------

Block* Heap::allocate(const Request& request) {
  Block* block = layout(request.kind).allocate(request.granules);
  if (block != nullptr) begin(*this, *block, request);
  return block;
}

Block* Heap::allocateFrom(Block& free, const Request& request, std::optional<Address> at) {
  Layout& own = layout(request.kind);
  Block* const block =
      at ? own.allocateAt(free, *at, request.granules) : own.allocateFrom(free, request.granules);
  begin(*this, *block, request);
  return block;
}

void Heap::release(Block& block, std::uint64_t tick, Freed how) noexcept {
  if (withdrawn_) [[unlikely]]
    table()->setOffering(*this, true);
  HeapSegment& segment = segmentOf(block);
  CountedLayout& own = layout(segment.kind);
  const std::uint32_t at =
      completion_.stampOf(how == Freed::kComplete ? completion_.completed() : completion_.now());
  const bool pending = block.state() == BlockState::kPending;
  Counts gone;
  if (how != Freed::kFromCache && !pending)
    gone = Counts::block(block.bytes(), ownership::requested(block), -1);
  if (pending) own.countPending(block, -1, false);
  const bool large = segment.kind == SizeKind::kLarge;
  completion_.noteFreed(large ? block.bytes() : 0);
  if (large && onPages()) recent_.note(segment, block.address(), block.end(), at);
  const Block* whole = own.release(block, at);
  if (whole->spansSegment()) segment.idle_since = tick & (UINT64_MAX >> 8);
  own.count(gone);
}

StreamUses Heap::setPending(Block& block) noexcept {
  CountedLayout& own = layout(segmentOf(block).kind);
  const std::uint64_t requested = ownership::requested(block);
  own.setPending(block);
  own.count(Counts::block(block.bytes(), requested, -1));
  own.countPending(block, +1, false);
  const std::unique_ptr<StreamUses> noted(static_cast<StreamUses*>(block.use.uses));
  block.use.uses = nullptr;
  StreamUses uses = noted ? std::move(*noted) : StreamUses{};
  if (block.use.stream != stream()) {
    uses.add(block.use.stream);
    uses.addAll();
  }
  return uses;
}

void Heap::reissue(Block& block, const Request& request) noexcept {
  CountedLayout& own = layout(segmentOf(block).kind);
  own.reissue(block);
  own.countPending(block, -1, true);
  begin(*this, block, request);
}

void Heap::setAside(Block& free) noexcept {
  CountedLayout& own = layout(segmentOf(free).kind);
  own.setAside(free);
  free.use = ownership::heapsOwn(0, stream());
  free.epoch = 0;
  own.count();
  own.countPending(free, +1, true);
}

std::vector<Block*> incompleteBlocks(Heap& heap) {
  std::vector<Block*> blocks;
  const Completion& known = heap.completion();
  forEachFree(heap, [&](Block& block) {
    if (known.epochOf(block.epoch) > known.completed()) blocks.push_back(&block);
  });
  return blocks;
}

void noteFreeComplete(Heap& heap) noexcept {
  const std::uint32_t completed = heap.completion().stampOf(heap.completion().completed());
  forEachFree(heap, [&](Block& block) { block.epoch = std::min(block.epoch, completed); });
}

// ---- Memory comes and goes ---------------------------------------------------------------------

Block* Heap::fill(SizeKind kind, Block& hole, Address from, Address to,
                  std::uint64_t epoch) noexcept {
  if (withdrawn_) table()->setOffering(*this, true);
  const std::uint32_t at = completion_.stampOf(epoch);
  completion_.noteFreed();
  if (kind == SizeKind::kLarge) recent_.note(*hole.segment, from, to, at);
  Block* const free = layout(kind).fill(hole, from, to, at);
  layout(kind).count();
  return free;
}

Block* Heap::punch(SizeKind kind, Block& free, Address from, Address to) noexcept {
  Block* const hole = layout(kind).punch(free, from, to);
  layout(kind).count();
  return hole;
}

// Memory that comes from elsewhere counts as freed now.
void Heap::add(HeapSegment& segment, From from) {
  if (withdrawn_) table()->setOffering(*this, true);
  CountedLayout& own = layout(segment.kind);
  const bool fresh = from == From::kDevice;
  own.add(segment, completion_.stampOf(fresh ? 0 : completion_.now()));
  segment.heap.store(this, std::memory_order_release);
  own.count();
  own.countBacking(segment.bytes, +1, from != From::kOtherHeap, from == From::kRefused);
  if (!fresh) completion_.noteFreed();
}

void Heap::remove(HeapSegment& segment, bool returned) noexcept {
  CountedLayout& own = layout(segment.kind);
  own.remove(segment);
  segment.heap.store(nullptr, std::memory_order_release);
  own.count();
  own.countBacking(segment.bytes, -1, returned);
}

// ---- Epochs, and another stream -----------------------------------------------------------------

// All that an epoch says is whether it is complete.
std::uint64_t Heap::endedEpoch() noexcept {
  if (completion_.ranOut()) [[unlikely]] {
    const Completion& known = completion();
    forEachFree(*this, [&](Block& block) {
      const bool complete = known.epochOf(block.epoch) <= known.completed();
      block.epoch = complete ? Completion::kComplete : Completion::kFirst;
    });
    recent_.restamp(Completion::kFirst);
    completion_.moveBase();
  }
  return completion_.endEpoch();
}

void Heap::leavePages(MemoryBacking& segments, const SizeRules& rules) noexcept {
  small_.rules = rules.splitRules(SizeKind::kSmall);
  large_.rules = rules.splitRules(SizeKind::kLarge);
  setBacking(segments);
}

bool Heap::moveTo(Pool& pool, Stream stream) noexcept {
  const MutexLock lock(mutex());
  if (!holdsNothing()) return false;
  (void)endedEpoch();
  completion_.beginAnew();
  recent_.forget(completion_.stampOf(completion_.completed()));
  low_water_ = {};
  hits_unpolled = 0;
  small_.rules = pool.splitRules(SizeKind::kSmall);
  large_.rules = pool.splitRules(SizeKind::kLarge);
  become(pool, stream);
  if (table() != nullptr) table()->setOffering(*this, !withdrawn_);
  for (ThreadCache* cache : caches_) cache->follow(stream);
  return true;
}

std::size_t Heap::hostBytes() const {
  return sizeof(Heap) + small_.hostBytes() + large_.hostBytes() + frees_.hostBytes() +
         recent_.hostBytes();
}

void Heap::audit() {
  for (SizeKind kind : kSizeKinds) layout(kind).audit();
  forEachSegment(*this,
                 [this](HeapSegment& segment) { CISTERN_CHECK(segment.heap.load() == this); });
  completion_.audit();
}

}  // namespace cistern
