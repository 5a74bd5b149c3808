// A thread's cache comes and goes, and hands out what it keeps. What it keeps is in places.cpp,
// what it may take without asking in room.cpp.
#include "allocator/engine/cache/thread_cache.hpp"

#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/engine/heap.hpp"

namespace cistern {
namespace {

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
  const bool may = block != nullptr && side.room.take(block->bytes(), bytes);
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
                   hasPlace(side, block) && holding::claim(block, held_);
  if (may) push(bin, side, block, Stream{toAddress(caller)});
  gate_.leave();
  return may;
}

// ---- Coming and going ---------------------------------------------------------------------------

void ThreadCache::bind(std::uint64_t table, Heap& heap, std::uint32_t owner,
                       CacheGround& ground) noexcept {
  heap_ = &heap;
  ground_ = &ground;
  follow(heap.stream());
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

// ---- Under the heap's lock ----------------------------------------------------------------------

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
  side.room.subtract(block.bytes(), bytes);
  pop(bin, side, block, bytes);
  noteTaken(bin);
  settleRoom();
  return &block;
}

// What another thread has freed is as good as freed by the owner.
void ThreadCache::takeReturned() noexcept {
  if (returned_.any()) takeReturned(returned_.takeAll());
}

void ThreadCache::takeReturned(Block* first) noexcept {
  for (Block* b = first; b;) {
    Block& block = *std::exchange(b, static_cast<Block*>(b->use.uses));
    const WhoFreed who(block.use.stream);
    if (!keep(block, holding::Where::kReturned, who)) release(block, who);
  }
}

bool ThreadCache::refuseReturns() noexcept {
  Block* const first = returned_.close();
  takeReturned(first);
  return first == nullptr;
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
