// What a thread's cache does under its heap's lock: places and room are made, blocks go back.
#include "allocator/engine/cache/thread_cache.hpp"

#include <algorithm>
#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/engine/heap.hpp"

namespace cistern {
namespace {

constexpr Tally kPlenty{std::int64_t{1} << 40, std::int64_t{1} << 60, std::int64_t{1} << 60};

constinit thread_local char thread_mark = 0;

}  // namespace

const void* ThreadCache::threadMark() noexcept { return &thread_mark; }

// ---- All sizes, without a lock -----------------------------------------------------------------

// Which size a bin is for may change while the gate is closed; hence it is looked at inside.
Block* ThreadCache::takeAny(std::uint64_t bytes) noexcept {
  const auto grains = std::uint32_t(grainsFor(bytes));
  Bin& bin = bins_[binOf(grains)];
  Side& side = sideOf(grains);
  if (!gate_.enter()) return nullptr;
  Block* const block = bin.grains == grains ? bin.top : nullptr;
  const bool may = block != nullptr && side.room.covers(block->bytes(), bytes);
  if (may) {
    pop(bin, side, *block, bytes);
    noteTaken(bin);
  }
  gate_.leave();
  return may ? block : nullptr;
}

bool ThreadCache::giveAny(Block& block, const void* caller) noexcept {
  if (block.use.holder != held_) return false;
  Bin& bin = bins_[binOf(block.grains)];
  Side& side = sideOf(block.grains);
  if (!gate_.enter()) return false;
  const bool last = block.grains > kSmallGrains;
  const bool may = bin.grains == block.grains && !(last && bin.top != nullptr) &&
                   side.room.bytes + std::int64_t(block.bytes()) <= side.limit &&
                   hasPlace(side, block);
  if (may) push(bin, side, block, Stream{toAddress(caller)});
  gate_.leave();
  return may;
}

// ---- Coming and going ---------------------------------------------------------------------------

void ThreadCache::bind(std::uint64_t table, Heap& heap, std::uint32_t owner,
                       CacheGround& ground) noexcept {
  heap_ = &heap;
  ground_ = &ground;
  stream_ = heap.stream();
  held_ = holding::holderOf(owner, holding::Where::kHeld);
  bins_ = {};
  for (std::uint32_t i = 0; i < kDirectGrains; ++i) bins_[i].grains = i + 1;
  small_ = large_ = {};
  forgetHabits();
  owner_ = nullptr;
  (void)setShut(false);
  returned_.reset();
  table_.store(table, std::memory_order_release);
}

void ThreadCache::unbind() noexcept { table_.store(0, std::memory_order_release); }

void ThreadCache::open(std::uint64_t most_small, std::uint64_t most_large) noexcept {
  small_.wanted = most_small;
  large_.wanted = most_large;
  owner_ = threadMark();
  owner_number_ = threadNumber();
  recents_ = {};
  recents_[0].address = kGrain;  // an empty one has an address that is looked for elsewhere
  returned_.open();
}

void ThreadCache::close() noexcept {
  putBackAll();
  for (Block* b = returned_.close(); b;) {
    Block& block = *std::exchange(b, static_cast<Block*>(b->use.uses));
    release(block, WhoFreed(block.use.stream));
  }
  for (Side* side : {&small_, &large_}) {
    ground_->budget.fetch_add(std::int64_t(side->granted), std::memory_order_relaxed);
    side->granted = 0;
    relimit(*side);
  }
  owner_ = nullptr;
}

// All or nothing: a cache that may keep less than it is made for would only be in the way.
void ThreadCache::grant(Side& side) noexcept {
  const auto asked = std::int64_t(side.wanted);
  if (ground_->budget.fetch_sub(asked, std::memory_order_relaxed) >= asked) {
    side.granted = side.wanted;
    relimit(side);
  } else {
    ground_->budget.fetch_add(asked, std::memory_order_relaxed);
  }
}

// ---- Blocks come --------------------------------------------------------------------------------

void ThreadCache::own(Block& block) noexcept {
  if (block.grains > kMostGrains) return;
  holding::store(block, held_);
}

Block* ThreadCache::takeWithRoom(std::uint64_t bytes) noexcept {
  const auto grains = std::uint32_t(grainsFor(bytes));
  Bin& bin = bins_[binOf(grains)];
  Side& side = sideOf(grains);
  const auto has = [&] { return bin.top != nullptr && bin.grains == grains; };
  if (!has()) takeReturned();
  if (!has()) return nullptr;
  Block& block = *bin.top;
  // Where there is no room a ceiling is passed, as it would be by any other block.
  (void)obtain(side, block.bytes(), bytes);
  pop(bin, side, block, bytes);
  noteTaken(bin);
  settleRoom();
  return &block;
}

// Room for one block out of what the heap may still count, and half of what is left over.
bool ThreadCache::obtain(Side& side, std::uint64_t size,
                         std::uint64_t bytes) noexcept CISTERN_NO_TSA {
  const Tally needed{1, std::int64_t(size), std::int64_t(bytes)};
  if (side.room.covers(needed)) return true;
  const bool ask = !loose();
  Tally missing = needed;
  missing -= side.room;
  missing = missing.orZero();
  Tally more = ask ? heap_->slack(kindOf(side), missing) : kPlenty;
  if (!more.covers(missing)) return false;
  more -= missing;
  more = more.half();
  more += missing;
  side.room += more;
  side.lent += more;
  side.limit += more.bytes;  // as lent.bytes
  if (ask) heap_->raiseCeilings(kindOf(side), more.negated());
  return true;
}

bool ThreadCache::accept(Block& block, WhoFreed who) noexcept {
  if (block.grains > kMostGrains) return false;
  Bin& bin = bins_[binOf(block.grains)];
  Side& side = sideOf(block.grains);
  const bool place = makePlace(bin, side, block);
  if (place) push(bin, side, block, who.word());
  settleRoom();  // some may have gone for nothing
  if (place) relimit(side);
  CISTERN_ASSERT(!side.room.negative());
  return place;
}

bool ThreadCache::makePlace(Bin& bin, Side& side, const Block& block) noexcept {
  const bool last = &side == &large_;
  if (last && isOthersToo()) return false;
  if (side.granted == 0) grant(side);
  if (block.bytes() > mostFor(side, block)) return false;
  if (block.bytes() >= untilEbb()) return putBackBins(), false;
  if (last || bin.grains != block.grains) {
    Habit& habit = last ? last_habit_ : shared_habit_;
    if (bin.top != nullptr) ++habit.unused;
    if (!habit.isWorthIt()) return false;
    putBack(bin);
    bin.grains = block.grains;
  }
  if (isShared(block) && !makeSharedPlace(bin, side, block)) return false;
  if (side.place() >= block.bytes()) return true;
  // A little more than is needed, so that the next ones find place too.
  const std::uint64_t enough = std::max(block.bytes(), side.granted / 8);
  for (std::size_t i = 0; i < kBins && side.place() < enough; ++i) {
    hand_ = hand_ + 1 < kBins ? hand_ + 1 : 0;
    if (&sideOf(bins_[hand_].grains) == &side) putBack(bins_[hand_]);
  }
  return true;
}

// Beyond three quarters a cache keeps none of the sizes that share stacks: a few blocks that nobody
// asks for again would fill it, and each small one would have to make place.
std::uint64_t ThreadCache::mostFor(const Side& side, const Block& block) {
  return isShared(block) ? side.granted - side.granted / 4 : side.granted;
}

// One stack after the other goes, and the block's own last.
bool ThreadCache::makeSharedPlace(Bin& bin, const Side& side, const Block& block) noexcept {
  for (std::size_t i = kSharedBin; i < kLastBin && !hasPlace(side, block); ++i) {
    shared_hand_ = shared_hand_ + 1 < kLastBin ? shared_hand_ + 1 : kSharedBin;
    if (&bins_[shared_hand_] != &bin) putBack(bins_[shared_hand_]);
  }
  if (!hasPlace(side, block)) putBack(bin);
  return hasPlace(side, block);
}

// On a stream that several threads use, a large block that one of them keeps is missing to the
// others, and what they take instead costs pages.
bool ThreadCache::isOthersToo() const noexcept CISTERN_NO_TSA {
  if (heap_->caches.size() < 2) return false;
  return std::any_of(heap_->caches.begin(), heap_->caches.end(),
                     [this](const ThreadCache* cache) { return cache != this && cache->isOpen(); });
}

// Where what is kept is never what is asked for next, keeping it is wasted; but programs change,
// and now and then it is tried again.
bool ThreadCache::Habit::isWorthIt() noexcept {
  constexpr std::uint32_t kPatience = 16;
  if (unused < kPatience || ++passed >= kPatience) {
    passed = 0;
    return true;
  }
  return false;
}

// ---- Blocks go ----------------------------------------------------------------------------------

void ThreadCache::putBack(Bin& bin) noexcept {
  Side& side = sideOf(bin.grains);
  while (Block* const block = bin.top) {
    bin.top = static_cast<Block*>(block->use.uses);
    side.room.subtract(block->bytes(), block->use.asked);
    release(*block, WhoFreed(block->use.stream));
  }
}

// Pre: in no bin, and counted as allocated by the heap.
inline void ThreadCache::handOver(Block& block, WhoFreed who) noexcept CISTERN_NO_TSA {
  heap_->frees.note(deviceAddress(block), block.grains, who.code(),
                    who.thread() ? who.thread() : owner_number_);
  holding::leaveToHeap(block, stream_);
}

void ThreadCache::letGo(Block& block, WhoFreed who) noexcept CISTERN_NO_TSA {
  handOver(block, who);
  heap_->release(block, ground_->tick.load(std::memory_order_relaxed));
}

void ThreadCache::release(Block& block, WhoFreed who) noexcept CISTERN_NO_TSA {
  handOver(block, who);
  heap_->releaseUnasked(block, ground_->tick.load(std::memory_order_relaxed));
  if (heap_->tide.fall(heap_->busyBytes() - cachedBytes()) && heap_->pages_moved)
    heap_->ebbed = true;
}

void ThreadCache::putBackBins() noexcept {
  putBackShared();
  for (std::size_t i = 0; i < kSharedBin && small_.cached() != 0; ++i) putBack(bins_[i]);
  forgetHabits();
  settleRoom();
}

bool ThreadCache::putSomeBack(SizeKind kind) noexcept {
  const Side& side = kind == SizeKind::kSmall ? small_ : large_;
  if (side.cached() == 0) return false;
  for (std::size_t i = kBins; i-- > 0;) {
    if (bins_[i].top == nullptr || &sideOf(bins_[i].grains) != &side) continue;
    putBack(bins_[i]);
    break;
  }
  settleRoom();
  return true;
}

void ThreadCache::putBackLast() noexcept {
  if (!hasLast()) return;
  ++last_habit_.unused;
  putBack(bins_[kLastBin]);
  if (isOthersToo()) bins_[kLastBin].grains = 0;
  settleRoom();
}

// giveAny() looks at the size alone: where no large block is to be kept, the bin is for none.
void ThreadCache::putBackShared() noexcept {
  if (cachedBytes() != 0) {
    for (std::size_t i = kLastBin; i >= kSharedBin; --i) putBack(bins_[i]);
  }
  if (isOthersToo()) bins_[kLastBin].grains = 0;
}

// Low tide is for the heap to see: who would bring it about goes there. Each side may go half the
// way to it before it looks again.
void ThreadCache::relimit(Side& side) noexcept { relimit(side, untilEbb() / 2); }

void ThreadCache::relimit(Side& side, std::uint64_t more) noexcept {
  const std::uint64_t most = std::min(side.granted, side.cached() + more);
  side.limit = std::int64_t(most) + side.lent.bytes;
}

void ThreadCache::noteFall() noexcept {
  const std::uint64_t more = untilEbb() / 2;
  relimit(small_, more);
  relimit(large_, more);
}

// How much the program may free before its heap holds as little as it ever does; only where pages
// have come away from where they began, which is what low tide is for.
std::uint64_t ThreadCache::untilEbb() const noexcept CISTERN_NO_TSA {
  if (!heap_->pages_moved) return std::uint64_t{1} << 60;
  const std::uint64_t busy = heap_->busyBytes() - cachedBytes();
  return busy > heap_->tide.ebb() ? busy - heap_->tide.ebb() : 0;
}

// Blocks that were given back before the room was given away are owed for by the ceilings that got
// it.
void ThreadCache::settleRoom() noexcept {
  if (small_.room.negative()) giveRoom(small_);
  if (large_.room.negative()) giveRoom(large_);
}

void ThreadCache::putBackAll() noexcept CISTERN_NO_TSA {
  takeReturned();
  putBackBins();
  count(small_);
  count(large_);
  giveRoom();
}

// Who settles needs more than ever: what larger blocks may merge with counts for more then than
// that they are at hand.
void ThreadCache::countAll() noexcept CISTERN_NO_TSA {
  takeReturned();
  putBackShared();
  for (Side* side : {&small_, &large_}) {
    count(*side);
    giveRoom(*side);
    heap_->countCached(kindOf(*side), side->lent.negated());
  }
}

// What another thread has freed is as good as freed by the owner.
void ThreadCache::takeReturned() noexcept {
  if (!returned_.any()) return;
  for (Block* b = returned_.takeAll(); b;) {
    Block& block = *std::exchange(b, static_cast<Block*>(b->use.uses));
    const WhoFreed who(block.use.stream);
    holding::store(block, held_);
    if (!accept(block, who)) release(block, who);
  }
}

// ---- Counting -----------------------------------------------------------------------------------

// The heap counts a cached block as allocated, but what was asked for in it as the program does:
// not any more. Hence what differs is how often blocks were taken, and what was asked for since.
void ThreadCache::count(Side& side) noexcept CISTERN_NO_TSA {
  heap_->countTaken(kindOf(side), side.taken, side.lent.requested - side.room.requested);
  side.taken = {};
  side.lent.requested = side.room.requested;
}

void ThreadCache::giveRoom() noexcept {
  giveRoom(small_);
  giveRoom(large_);
}

// Where peaks are loose, room was had for nothing.
void ThreadCache::giveRoom(Side& side) noexcept CISTERN_NO_TSA {
  if (side.room.isZero()) return;
  if (!loose()) heap_->raiseCeilings(kindOf(side), side.room);
  side.lent -= side.room;
  side.limit -= side.room.bytes;  // as lent.bytes
  side.room = {};
}

void ThreadCache::audit() const {
  for (const Bin& bin : bins_) {
    for (const Block* b = bin.top; b; b = static_cast<const Block*>(b->use.uses)) {
      CISTERN_CHECK(b->state() == BlockState::kAllocated && b->grains == bin.grains);
      CISTERN_CHECK(holding::load(*b) == holding::moved(held_, holding::Where::kCached));
    }
  }
  auditSide(small_);
  auditSide(large_);
}

void ThreadCache::auditSide(const Side& side) const {
  std::uint64_t blocks = 0, bytes = 0;
  for (const Bin& bin : bins_) {
    if (&sideOf(bin.grains) != &side) continue;
    for (const Block* b = bin.top; b; b = static_cast<const Block*>(b->use.uses)) {
      ++blocks;
      bytes += b->bytes();
    }
  }
  CISTERN_CHECK(bytes == side.cached() && bytes <= side.granted);
  CISTERN_CHECK(side.limit <= std::int64_t(side.granted) + side.lent.bytes);
  CISTERN_CHECK(!side.room.negative());
  CISTERN_CHECK(side.room.blocks - side.lent.blocks == std::int64_t(blocks));
  CISTERN_CHECK(side.room.bytes - side.lent.bytes == std::int64_t(bytes));
}

}  // namespace cistern
