// A thread's cache comes and goes, and hands out what it keeps. What it keeps is in places.cpp.
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
  if (!counters_->gate.enter()) return nullptr;
  Block* const block = bin.grains == grains ? bin.top : nullptr;
  bool far = false;
  if (block != nullptr) {
    unlink(bin, *block, bytes);
    side.place += std::int64_t(block->bytes());
    far = counters_->of(kindOf(grains)).take(block->bytes(), bytes);
    noteTaken(bin);
  }
  counters_->gate.leave();
  if (far) (void)publish(nullptr);
  return block;
}

bool ThreadCache::giveAny(Block& block, const void* caller) noexcept {
  if (block.use.holder != held_) return false;
  Bin& bin = bins_[binOf(block.grains)];
  Side& side = sideOf(block.grains);
  if (!counters_->gate.enter()) return false;
  const bool last = block.grains > kSmallGrains;
  const bool may = bin.grains == block.grains && !(last && bin.top != nullptr) &&
                   std::int64_t(block.bytes()) <= side.place && hasPlace(side, block) &&
                   holding::claim(block, held_);
  bool far = false;
  if (may) {
    link(bin, block, Stream{toAddress(caller)});
    side.place -= std::int64_t(block.bytes());
    far = counters_->of(kindOf(block.grains)).give(block.bytes(), block.use.asked);
  }
  counters_->gate.leave();
  if (far) (void)publish(nullptr);
  return may;
}

void* ThreadCache::publish(void* pointer) noexcept {
  counters_->totals.publish(*counters_);
  return pointer;
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
  shut_ = false;
  unlist();  // it may have been in the list of a table that is gone
  returned_.reset();
  table_.store(table, std::memory_order_release);
}

void ThreadCache::unbind() noexcept { table_.store(0, std::memory_order_release); }

void ThreadCache::open(std::uint64_t most_small, std::uint64_t most_large,
                       ThreadCounters& mine) noexcept {
  small_.wanted = std::int64_t(most_small);
  large_.wanted = std::int64_t(most_large);
  counters_ = &mine;
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
    ground_->budget.fetch_add(side->granted, std::memory_order_relaxed);
    side->granted = 0;
  }
  owner_ = nullptr;
  counters_ = nullptr;
}

// All or nothing: a cache that may keep less than it is made for would only be in the way.
void ThreadCache::grant(Side& side) noexcept {
  if (ground_->budget.fetch_sub(side.wanted, std::memory_order_relaxed) >= side.wanted) {
    side.granted = side.wanted;
  } else {
    ground_->budget.fetch_add(side.wanted, std::memory_order_relaxed);
  }
}

// ---- Under the heap's lock ----------------------------------------------------------------------

void ThreadCache::own(Block& block) noexcept {
  if (block.grains > kMostGrains) return;
  holding::store(block, held_);
}

Block* ThreadCache::takeLocked(std::uint64_t bytes) noexcept {
  const auto grains = std::uint32_t(grainsFor(bytes));
  Bin& bin = bins_[binOf(grains)];
  const auto has = [&] { return bin.top != nullptr && bin.grains == grains; };
  if (!has()) takeReturned();
  if (!has()) return nullptr;
  Block& block = *bin.top;
  unlink(bin, block, bytes);
  sideOf(grains).place += std::int64_t(block.bytes());
  counters_->totals.countTaken(kindOf(grains), block.bytes(), bytes);
  noteTaken(bin);
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
  std::uint64_t bytes = 0;
  for (const Bin& bin : bins_) {
    if (&sideOf(bin.grains) != &side) continue;
    for (const Block* b = bin.top; b; b = static_cast<const Block*>(b->use.uses)) {
      bytes += b->bytes();
    }
  }
  CISTERN_CHECK(std::int64_t(bytes) == side.cached() && side.cached() <= side.granted);
  CISTERN_CHECK(side.limit <= side.granted);
}

}  // namespace cistern
