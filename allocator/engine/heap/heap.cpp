#include "allocator/engine/heap/heap.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "allocator/base/check.hpp"

namespace cistern {
namespace {

template <class Visit>
void forEachFree(Heap& heap, Visit visit) CISTERN_REQUIRES(heap.mutex()) {
  forEachBlock(heap, [&](Block& block) {
    if (block.isFree()) visit(block);
  });
}

}  // namespace

// A block in use remembers in `epoch` which capture it was allocated in.
[[gnu::always_inline]] inline void Heap::begin(Block& block, const Request& request) noexcept {
  block.use = ownership::heapsOwn(request.bytes, request.stream);
  block.epoch = request.part;
  layout(request.kind).count(Counts::block(block.bytes(), request.bytes, +1));
  if (request.kind == SizeKind::kLarge && onPages() && request.capture == nullptr) noteRound(block);
  if (observer_ != nullptr) [[unlikely]]
    observer_->allocated(deviceAddress(block), request.bytes, request.stream, pool_id_);
}

// The recent frees of large blocks are noted.
[[gnu::always_inline]] inline void Heap::noteFree(SizeKind kind, const Free& memory,
                                                  std::uint64_t freed_bytes) noexcept {
  if (!memory.fresh) completion_.noteFreed(freed_bytes);
  if (kind == SizeKind::kLarge && onPages())
    recent_.note(memory.in, memory.from, memory.to, memory.stamp);
}

// Memory becomes free, so that other heaps may look here again. False if the heap sleeps: then a
// block that is freed becomes no free memory.
[[gnu::noinline]] bool Heap::attend() noexcept {
  if (asleep()) return false;
  if (withdrawn()) board()->setOffering(*this, true);
  return true;
}

// ---- Blocks ------------------------------------------------------------------------------------

[[gnu::always_inline]] inline Block* Heap::allocateBest(const Request& request) {
  Block* block = layout(request.kind).allocate(request.granules);
  if (block != nullptr) begin(*block, request);
  return block;
}

[[gnu::always_inline]] inline Block* Heap::take(Block& free, const Request& request, Address at) {
  Layout& own = layout(request.kind);
  Block* const block = at != 0 ? own.allocateAt(free, at, request.granules)
                               : own.allocateFrom(free, request.granules);
  begin(*block, request);
  return block;
}

Block* Heap::allocate(const Request& request) {
  if (request.slack != 0) [[unlikely]]
    return allocateAligned(request);
  if (request.kind == SizeKind::kSmall || !rounds_.movesIn()) return allocateBest(request);
  const Address from = rounds_.frozenFrom();
  Block* const free = large_.bestFitIf(
      request.granules, [from](const Block& block) { return block.address() >= from; });
  return free == nullptr ? nullptr : allocateFrom(*free, request);
}

// A place of an aligned request may have been noted for a plain one of that size.
Block* Heap::alignedAsBefore(const Request& request, bool& elsewhere) {
  if (request.kind == SizeKind::kSmall || !rounds_.guides()) return allocateAligned(request);
  const bool aligned = (rounds_.placeOf(request.granules) & (request.alignment() - 1)) == 0;
  return aligned ? allocateAtPlace(request, elsewhere) : allocateAligned(request);
}

// Free memory that lies right needs no slack. The index is in order of sizes, so it shows few of
// those that do; all are looked at before the request is a miss.
[[gnu::noinline]] Block* Heap::allocateAligned(const Request& request) {
  CountedLayout& own = layout(request.kind);
  const bool moves_in = request.kind == SizeKind::kLarge && rounds_.movesIn();
  const Address from = moves_in ? rounds_.frozenFrom() : 0;
  const auto serves = [&](const Block& block) {
    return block.address() >= from && own.serves(block, request.granules) &&
           hasRoom(own, block, request);
  };
  Block* free = own.best(request.granules);
  if (free != nullptr && !serves(*free)) free = own.bestFitIf(request.granules, serves);
  if (free == nullptr) free = own.bestFitIf(request.enough(), serves);
  if (free == nullptr) free = own.findIf(request.granules, serves);
  return free == nullptr ? nullptr : allocateFrom(*free, request);
}

[[gnu::noinline]] void Heap::noteRound(const Block& block) noexcept {
  const std::uint64_t others = large_.totals().busy_bytes - block.bytes();
  rounds_.note(block.granules, block.address(), std::uint32_t(others / kMiB));
}

// A round that repeats itself meets itself: each request finds what the round before has left where
// it was. Best fit alone would see other free blocks, and place it elsewhere. Blocks that the index
// does not show here are found by PageBacking::placeAsBefore.
Block* Heap::allocateAsBefore(const Request& request, bool& elsewhere) {
  if (request.kind == SizeKind::kSmall || !rounds_.guides()) [[likely]]
    return allocateBest(request);
  return allocateAtPlace(request, elsewhere);
}

[[gnu::noinline]] Block* Heap::allocateAtPlace(const Request& request, bool& elsewhere) {
  elsewhere = isFreezeDue();
  if (elsewhere) return nullptr;
  const Address at = rounds_.placeOf(request.granules), end = at + request.rounded();
  if (at == 0 || rounds_.movesIn()) return allocate(request);
  Block* free = large_.freeBlocks().bestFit(request.granules);
  if (free == nullptr || free->address() != at) {
    free = large_.bestFitIf(request.granules, [at, end](const Block& block) {
      return block.address() <= at && end <= block.end();
    });
  }
  if (free == nullptr && rounds_.frozen()) return allocate(request);
  elsewhere = free == nullptr;
  if (elsewhere) return nullptr;
  return take(*free, request, free->address() == at ? 0 : at);
}

Block* Heap::allocateFrom(Block& free, const Request& request, Address at) {
  if (request.slack != 0) [[unlikely]] {
    if (at == 0) at = placeIn(free, request);
    if (at == free.address()) at = 0;  // as the rules of splitting say
  }
  return take(free, request, at);
}

void Heap::release(Block& block, std::uint64_t tick, Freed how) noexcept {
  const bool awake = attention_ == 0 || attend();
  HeapSegment& segment = segmentOf(block);
  CountedLayout& own = layout(segment.kind);
  const std::uint32_t at =
      completion_.stampOf(how == Freed::kComplete ? completion_.completed() : completion_.now());
  const bool pending = block.state() == BlockState::kPending;
  Counts gone;
  if (how != Freed::kFromCache && !pending)
    gone = Counts::block(block.bytes(), ownership::requested(block), -1);
  if (pending) own.countPending(block, -1, false);
  if (observer_ != nullptr) [[unlikely]] {
    pending ? observer_->usesEnded(deviceAddress(block))
            : observer_->freed(deviceAddress(block), false);
  }
  if (!awake) [[unlikely]] {
    (void)own.vacate(block);
    return own.count(gone);
  }
  noteFree(segment.kind, {segment, block.address(), block.end(), at},
           segment.kind == SizeKind::kLarge ? block.bytes() : 0);
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
  if (observer_ != nullptr) [[unlikely]]
    observer_->freed(deviceAddress(block), true);
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
  begin(block, request);
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
  const std::uint32_t at = completion_.stampOf(epoch);
  if (attention_ != 0) (void)attend();
  noteFree(kind, {*hole.segment, from, to, at}, 0);
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
  CountedLayout& own = layout(segment.kind);
  const bool fresh = from == From::kDevice;
  const std::uint32_t at = completion_.stampOf(fresh ? 0 : completion_.now());
  own.add(segment, at);
  segment.heap.store(this, std::memory_order_release);
  if (attention_ != 0) (void)attend();
  noteFree(segment.kind, {segment, segment.base, segment.base + segment.bytes, at, fresh}, 0);
  own.count();
  own.countBacking(segment.bytes, +1, from != From::kOtherHeap, from == From::kRefused);
}

void Heap::remove(HeapSegment& segment, bool returned) noexcept {
  CountedLayout& own = layout(segment.kind);
  own.remove(segment);
  segment.heap.store(nullptr, std::memory_order_release);
  own.count();
  own.countBacking(segment.bytes, -1, returned);
}

// ---- Sleep --------------------------------------------------------------------------------------

void Heap::fallAsleep() {
  std::vector<Block*> free;
  forEachFree(*this, [&](Block& block) { free.push_back(&block); });
  for (SizeKind kind : kSizeKinds) layout(kind).prepareHoles(unsigned(free.size()));
  for (Block* block : free) {
    const SizeKind kind = segmentOf(*block).kind;
    (void)punch(kind, *block, block->address(), block->end());
  }
  set(kAsleep, true);
  if (board() != nullptr) board()->setOffering(*this, false);
}

void Heap::wake() noexcept {
  set(kAsleep, false);
  if (board() != nullptr) board()->setOffering(*this, true);
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

void Heap::leavePages(const HeapOptions& options) noexcept {
  small_.rules = options.small;
  large_.rules = options.large;
  HeapIdentity::leavePages();
}

bool Heap::moveTo(Pool& pool, Stream stream, const HeapOptions& options) noexcept {
  if (!holdsNothing()) return false;
  (void)endedEpoch();
  completion_.beginAnew();
  recent_.forget(completion_.stampOf(completion_.completed()));
  low_water_ = {};
  rounds_.forget();
  hits_unpolled = 0;
  small_.rules = options.small;
  large_.rules = options.large;
  pool_id_ = options.pool;
  become(pool, stream);
  return true;
}

// ---- What it has for others ---------------------------------------------------------------------

void Heap::withdrawIfEmpty() noexcept {
  for (SizeKind kind : kSizeKinds) {
    const FreeIndex& free = layout(kind).freeBlocks();
    const bool whole = free.blocks() != layout(kind).totals().split_free_blocks;
    if (onPages() ? largestFree(free) >= kPageUnit : whole) return;
  }
  withdraw();
}

// Blocks that the index has left out may be found later.
void Heap::withdraw() noexcept {
  const bool left_out = small_.freeBlocks().hasLeftOut() || large_.freeBlocks().hasLeftOut();
  if (board() == nullptr || withdrawn() || left_out) return;
  board()->setOffering(*this, false);
}

std::size_t Heap::hostBytes() const {
  return sizeof(Heap) + small_.hostBytes() + large_.hostBytes() + frees_.hostBytes() +
         recent_.hostBytes() + rounds_.hostBytes();
}

std::uint64_t freeBytes(const std::vector<Heap*>& heaps) {
  std::uint64_t free = 0;
  for (Heap* heap : heaps) {
    const MutexLock lock(heap->mutex());
    if (!heap->asleep()) free += heap->reservedBytes() - heap->busyBytes();
  }
  return free;
}

std::uint64_t freeDeviceBytes(const std::vector<Heap*>& heaps) {
  std::uint64_t free = 0;
  for (Heap* heap : heaps) {
    const MutexLock lock(heap->mutex());
    if (heap->asleep()) continue;
    const std::uint64_t reserved = heap->reservedBytes(), host = heap->host_bytes;
    free += std::min(reserved - heap->busyBytes(), reserved - std::min(host, reserved));
  }
  return free;
}

void Heap::audit() {
  for (SizeKind kind : kSizeKinds) {
    layout(kind).audit(asleep());
    CISTERN_CHECK(!asleep() || layout(kind).freeBlocks().blocks() == 0);
  }
  forEachSegment(*this,
                 [this](HeapSegment& segment) { CISTERN_CHECK(segment.heap.load() == this); });
  completion_.audit();
}

}  // namespace cistern
