// A thread's cache comes and goes, and hands out what it keeps. cached_blocks.cpp decides what that
// is.
#include "allocator/engine/cache/thread_cache.hpp"

#include <utility>

#include "allocator/base/thread_number.hpp"

namespace cistern {
namespace {

/// Calls `visit` for each block of a list and the thread that freed it, after the block has left
/// the list.
template <class Visit>
void forEachFreed(Block* first, Visit visit) {
  while (first != nullptr) {
    Block& block = *std::exchange(first, ownership::linkedTo(*first));
    visit(block, WhoFreed(block.use.stream));
  }
}

}  // namespace

void ThreadCache::publish() noexcept { totals().publish(*counters_); }

// Puts the cache onto the list; others do the same.
void ThreadCache::push() noexcept {
  next_ = ground_->filled.load(std::memory_order_relaxed);
  while (!ground_->filled.compare_exchange_weak(next_, this, std::memory_order_acq_rel,
                                                std::memory_order_relaxed)) {
  }
}

// ---- Coming and going ---------------------------------------------------------------------------

void ThreadCache::open(ThreadCounters& mine) noexcept {
  blocks_.open(threadNumber());
  counters_ = &mine;
  heap().mutex().assertHeld();
  if (!heap().isObserved()) remote_frees_.open();
}

void ThreadCache::close() noexcept {
  flush();
  forEachFreed(remote_frees_.close(),
               [&](Block& block, WhoFreed who) { blocks_.release(block, who); });
  blocks_.close();
  counters_ = &ThreadCounters::nobodys;
}

// ---- Under the heap's lock ----------------------------------------------------------------------

Block* ThreadCache::takeLocked(std::uint64_t bytes) noexcept {
  Block* block = blocks_.take(bytes);
  if (block == nullptr && remote_frees_.any()) {
    takeRemoteFrees();
    block = blocks_.take(bytes);
  }
  if (block != nullptr)
    totals().countBlock(CacheSizes::kindOf(block->granules), block->bytes(), bytes, +1);
  return block;
}

const Block* ThreadCache::nextLocked(std::uint64_t bytes) noexcept {
  if (remote_frees_.any()) takeRemoteFrees();
  return bytes <= CacheSizes::kMostBytes ? blocks_.next(std::uint32_t(granulesFor(bytes)))
                                         : nullptr;
}

// Blocks that the program gives back are counted here. A block that another thread has returned was
// counted by that thread.
bool ThreadCache::accept(Block& block, WhoFreed who) noexcept {
  if (!blocks_.keep(block, ownership::Where::kHeld, who)) return false;
  totals().countBlock(CacheSizes::kindOf(block.granules), block.bytes(), block.use.asked, -1);
  list();
  return true;
}

// A block that another thread has freed is as good as freed by the owner. The sender lists the
// cache.
void ThreadCache::takeIn(Block* first) noexcept {
  forEachFreed(first, [&](Block& block, WhoFreed who) {
    if (!blocks_.keep(block, ownership::Where::kRemoteFreed, who)) blocks_.release(block, who);
  });
}

void ThreadCache::closeRemoteFrees() noexcept { takeIn(remote_frees_.close()); }

void ThreadCache::flush() noexcept {
  if (remote_frees_.any()) takeRemoteFrees();
  blocks_.flush();
}

}  // namespace cistern
