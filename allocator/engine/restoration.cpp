// What has to be done to set a pool back, and whether it can be. See restoration.hpp.
#include "allocator/engine/restoration.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace cistern {

void CachingAllocator::Restoration::refuse(const LiveBlock& block, const char* why) {
  throw PoolError(fmt::format("cannot set back its block of {} bytes at {:#x}: {}", block.bytes,
                              block.address, why));
}

// Each look begins anew: the pool's user sees to it that nothing else happens in the pool, but
// memory of it goes back to the device, is lent, or, where the pool is draining, moves elsewhere.
void CachingAllocator::Restoration::look() CISTERN_NO_TSA {
  freed_.clear();
  made_.clear();
  leaving_.clear();
  making_.clear();
  needs_.clear();
  prepared_.clear();
  comeback_.emplace(pool_);
  compare();
  for (const LiveBlock& block : made_) checkPlace(block);
}

// Whether a stream is gone is asked before any heap is locked. Nothing can be done on it: it may
// have been destroyed, and what has its handle now may be another that nobody has named.
void CachingAllocator::Restoration::findForgotten() {
  for (const LiveBlock& block : wanted_) {
    const auto place = std::ranges::lower_bound(forgotten_, block.stream);
    if (place != forgotten_.end() && *place == block.stream) continue;
    const bool gone = allocator_.streams_.ask(
        block.stream, [] { return false; }, [](const SharedStreamEnd&) { return true; });
    if (gone) forgotten_.insert(place, block.stream);
  }
}

void CachingAllocator::Restoration::compare() CISTERN_NO_TSA {
  std::vector<bool> there(wanted_.size());
  for (Heap* heap : heaps_) {
    if (&heap->pool() != &pool_) continue;  // it has left since the heaps were listed
    if (heap->recorded) throw PoolError("cannot be set back while it is captured into");
    forEachHeld(*heap, [&](const LiveBlock& live, Block& block) {
      const auto it = std::ranges::lower_bound(wanted_, live.address, {}, &LiveBlock::address);
      if (it != wanted_.end() && *it == live) {
        there[std::size_t(it - wanted_.begin())] = true;
      } else {
        freed_.push_back(live);
        leaving_.push_back({heap, &block});
      }
    });
  }
  std::ranges::sort(freed_, {}, &LiveBlock::address);
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    if (!there[i]) made_.push_back(wanted_[i]);
  }
}

bool CachingAllocator::Restoration::holds(const Heap* heap) const {
  return heap != nullptr && &heap->pool() == &pool_ &&
         std::binary_search(heaps_.begin(), heaps_.end(), heap);
}

// The block's place is the pool's still, or its pages come back to it, and nobody uses it.
void CachingAllocator::Restoration::checkPlace(const LiveBlock& wanted) CISTERN_NO_TSA {
  if (std::ranges::binary_search(forgotten_, wanted.stream)) refuse(wanted, kForgotten);
  const auto [segment, heap] = allocator_.locate(wanted.address);
  if (!holds(heap) || !heap->owns(*segment, wanted.address)) refuse(wanted, kGone);
  const Address from = segment->placeOf(wanted.address), to = from + wanted.bytes;
  if (to > segment->end()) refuse(wanted, kGone);
  checkMemory(wanted, *heap, *segment, from, to, {wanted.stream});
  making_.push_back({&wanted, heap, segment});
  if (heap->onPages()) checkPages(wanted, making_.back());
}

void CachingAllocator::Restoration::checkPages(const LiveBlock& wanted, const Making& place) {
  const auto& range = static_cast<const pages::PageRange&>(*place.segment);
  const Address from = range.placeOf(wanted.address);
  std::vector<pages::View*> away;
  if (!comeback_->want(range, from, from + wanted.bytes, away)) refuse(wanted, kGone);
  for (const pages::View* view : away) {
    const pages::View& now = *view->page->current;
    Heap& source = *now.range->home;
    if (!holds(&source)) refuse(wanted, kGone);
    checkMemory(wanted, source, *now.range, now.place(), now.placeEnd(),
                {wanted.stream, place.heap->stream()});
  }
}

// All of it that has memory must be free, or be about to be; `users` are to come after what its
// heap's stream has done with it.
void CachingAllocator::Restoration::checkMemory(const LiveBlock& wanted, Heap& heap,
                                                const Segment& segment, Address from, Address to,
                                                const std::vector<Stream>& users) {
  for (const Block* b = Layout::covering(segment, from); b && b->address() < to; b = b->next) {
    if (b->isHole()) continue;
    const bool free = b->isFree();
    if (!free && !(isLeaving(heap, *b) && ownAlone(heap, *b))) refuse(wanted, kInUse);
    for (const Stream user : users) {
      require(wanted, heap, free ? std::optional(b->epoch) : std::nullopt, user);
    }
  }
}

bool CachingAllocator::Restoration::ownAlone(const Heap& heap, const Block& block) {
  return block.use.uses == nullptr && block.use.stream == heap.stream();
}

// What the pool's users hold either stays or is about to be freed.
bool CachingAllocator::Restoration::isLeaving(const Heap& heap, const Block& block) const {
  if (block.state() != BlockState::kAllocated || block.epoch == Request::kLent) return false;
  const auto it = std::ranges::lower_bound(freed_, deviceAddress(block), {}, &LiveBlock::address);
  return it != freed_.end() && it->address == deviceAddress(block) && holds(&heap);
}

// `freed_in`: the epoch, for what is free already; what is about to be freed has been used until
// now, and nobody goes on using it.
void CachingAllocator::Restoration::require(const LiveBlock& wanted, Heap& heap,
                                            std::optional<std::uint32_t> freed_in,
                                            Stream later) CISTERN_NO_TSA {
  if (later == heap.stream()) return;
  if (freed_in && heap.complete({*freed_in, heap.generation})) return;
  const auto covers = [&](const Ordered& ordered) CISTERN_NO_TSA {
    if (ordered.heap != &heap || ordered.later != later) return false;
    return !freed_in ||
           (ordered.until.generation == heap.generation && *freed_in <= ordered.until.epoch);
  };
  if (std::ranges::any_of(ordered_, covers)) return;
  const auto same = [&](const Need& need) { return need.heap == &heap && need.later == later; };
  if (std::ranges::none_of(needs_, same)) needs_.push_back({&wanted, &heap, later});
}

}  // namespace cistern
