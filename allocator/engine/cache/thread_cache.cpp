// A thread's cache comes and goes, and hands out what it keeps. What it keeps is in eviction.cpp.
#include "allocator/engine/cache/thread_cache.hpp"

#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern {
namespace {

constinit thread_local char thread_mark = 0;

}  // namespace

const void* ThreadCache::threadMark() noexcept { return &thread_mark; }

// ---- All sizes, without a lock -----------------------------------------------------------------

// Which size a bin is for may change while the gate is closed; hence it is looked at inside.
Block* ThreadCache::takeAny(std::uint64_t bytes) noexcept {
  const auto granules = std::uint32_t(granulesFor(bytes));
  Bin& bin = bins_[binOf(granules)];
  Side& side = sideOf(granules);
  if (!counters_->gate.enter()) return nullptr;
  Block* const block = bin.granules == granules ? bin.top : nullptr;
  bool far = false;
  if (block != nullptr) {
    unlink(bin, *block, bytes);
    side.room += std::int64_t(block->bytes());
    far = counters_->of(kindOf(granules)).take(block->bytes(), bytes);
    noteTaken(bin);
  }
  counters_->gate.leave();
  if (far) (void)publish(nullptr);
  return block;
}

bool ThreadCache::giveAny(Block& block, const void* caller) noexcept {
  if (block.use.holder != held_) return false;
  Bin& bin = bins_[binOf(block.granules)];
  Side& side = sideOf(block.granules);
  if (!counters_->gate.enter()) return false;
  const bool last = block.granules > kSmallGranules;
  const bool may = bin.granules == block.granules && !(last && bin.top != nullptr) &&
                   std::int64_t(block.bytes()) <= side.room && hasRoom(side, block) &&
                   ownership::take(block, held_);
  bool far = false;
  if (may) {
    link(bin, block, Stream{toAddress(caller)});
    side.room -= std::int64_t(block.bytes());
    far = counters_->of(kindOf(block.granules)).give(block.bytes(), block.use.asked);
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
  held_ = ownership::holderOf(owner, ownership::Where::kHeld);
  bins_ = {};
  for (std::uint32_t i = 0; i < kDirectGranules; ++i) bins_[i].granules = i + 1;
  small_ = large_ = {};
  forgetHabits();
  owner_ = nullptr;
  shut_ = false;
  unlist();  // it may have been in the list of a table that is gone
  remote_frees_.reset();
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
  recents_[0].address = kGranule;  // an empty one has an address that is looked for elsewhere
  remote_frees_.open();
}

void ThreadCache::close() noexcept {
  flush();
  for (Block* b = remote_frees_.close(); b;) {
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
  if (block.granules > kMostGranules) return;
  ownership::store(block, held_);
}

Block* ThreadCache::takeLocked(std::uint64_t bytes) noexcept {
  const auto granules = std::uint32_t(granulesFor(bytes));
  Bin& bin = bins_[binOf(granules)];
  const auto has = [&] { return bin.top != nullptr && bin.granules == granules; };
  if (!has()) takeRemoteFrees();
  if (!has()) return nullptr;
  Block& block = *bin.top;
  unlink(bin, block, bytes);
  sideOf(granules).room += std::int64_t(block.bytes());
  counters_->totals.countTaken(kindOf(granules), block.bytes(), bytes);
  noteTaken(bin);
  return &block;
}

// What another thread has freed is as good as freed by the owner.
void ThreadCache::takeRemoteFrees() noexcept {
  if (remote_frees_.any()) takeRemoteFrees(remote_frees_.takeAll());
}

void ThreadCache::takeRemoteFrees(Block* first) noexcept {
  for (Block* b = first; b;) {
    Block& block = *std::exchange(b, static_cast<Block*>(b->use.uses));
    const WhoFreed who(block.use.stream);
    if (!keep(block, ownership::Where::kRemoteFreed, who)) release(block, who);
  }
}

void ThreadCache::audit() const {
  for (const Bin& bin : bins_) {
    for (const Block* b = bin.top; b; b = static_cast<const Block*>(b->use.uses)) {
      CISTERN_CHECK(b->state() == BlockState::kAllocated && b->granules == bin.granules);
      CISTERN_CHECK(ownership::load(*b) == ownership::moved(held_, ownership::Where::kCached));
    }
  }
  auditSide(small_);
  auditSide(large_);
}

void ThreadCache::auditSide(const Side& side) const {
  std::uint64_t bytes = 0;
  for (const Bin& bin : bins_) {
    if (&sideOf(bin.granules) != &side) continue;
    for (const Block* b = bin.top; b; b = static_cast<const Block*>(b->use.uses)) {
      bytes += b->bytes();
    }
  }
  CISTERN_CHECK(std::int64_t(bytes) == side.cached() && side.cached() <= side.granted);
  CISTERN_CHECK(side.limit <= side.granted);
}

}  // namespace cistern
