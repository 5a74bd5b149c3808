#include "allocator/engine/active_heaps.hpp"

#include <algorithm>

#include "allocator/base/check.hpp"
#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/heap.hpp"

namespace cistern {
namespace {

void addTo(std::array<StatArray, kSizeKindCount>& sum,
           const std::array<StatArray, kSizeKindCount>& more, int sign) {
  for (std::size_t kind = 0; kind < kSizeKindCount; ++kind) {
    for (std::size_t stat = 0; stat < kStatCount; ++stat)
      sum[kind][stat] += sign * more[kind][stat];
  }
}

}  // namespace

void ActiveHeaps::add(Heap& heap) CISTERN_NO_TSA {
  const MutexLock lock(mutex_);
  const std::size_t count = made_.size() + 1;
  if (active_.capacity() < count) active_.reserve(2 * count);
  offering_.reserve(count);
  made_.push_back(&heap);
  heap.activity = {this, made_.size() - 1, active_.size()};
  active_.push_back(&heap);
  offering_.insert(heap.activity.number);
}

void ActiveHeaps::wake(Heap& heap) noexcept CISTERN_NO_TSA {
  const MutexLock lock(mutex_);
  Heap::Activity& activity = heap.activity;
  addTo(resting_.counters.current, heap.counted().current, -1);
  addTo(resting_.counters.allocated, heap.counted().allocated, -1);
  resting_.host_bytes -= activity.host_bytes;
  --resting_.heaps;
  activity.index = active_.size();
  active_.push_back(&heap);
  if (!heap.withdrawn()) offering_.insert(activity.number);
}

void ActiveHeaps::rest(Heap& heap) noexcept CISTERN_NO_TSA {
  const bool offers = heap.offers();
  const std::size_t host_bytes = heap.hostBytes();
  const MutexLock lock(mutex_);
  Heap::Activity& activity = heap.activity;
  addTo(resting_.counters.current, heap.counted().current, +1);
  addTo(resting_.counters.allocated, heap.counted().allocated, +1);
  activity.host_bytes = host_bytes;
  resting_.host_bytes += host_bytes;
  ++resting_.heaps;
  active_.back()->activity.index = activity.index;
  active_[activity.index] = active_.back();
  active_.pop_back();
  if (!offers) offering_.erase(activity.number);
}

void ActiveHeaps::withdraw(const Heap& heap) noexcept {
  const MutexLock lock(mutex_);
  offering_.erase(heap.activity.number);
}

void ActiveHeaps::offer(const Heap& heap) noexcept {
  const MutexLock lock(mutex_);
  offering_.insert(heap.activity.number);
}

bool ActiveHeaps::appendNew(std::vector<Heap*>& held, Resting& resting) const noexcept {
  const MutexLock lock(mutex_);
  if (held.size() == active_.size()) {
    resting = resting_;
    return false;
  }
  const std::size_t most = std::min(active_.size(), held.capacity());
  for (std::size_t i = held.size(); i < most; ++i) held.push_back(active_[i]);
  return true;
}

std::vector<Heap*> ActiveHeaps::all() const {
  std::vector<Heap*> heaps;
  {
    const MutexLock lock(mutex_);
    heaps = active_;
  }
  std::sort(heaps.begin(), heaps.end(),
            [](const Heap* a, const Heap* b) { return a->activity.number < b->activity.number; });
  return heaps;
}

std::size_t ActiveHeaps::count() const {
  const MutexLock lock(mutex_);
  return active_.size();
}

Heap* ActiveHeaps::nextOffering(std::size_t& number) const noexcept {
  const MutexLock lock(mutex_);
  const std::size_t next = offering_.next(number);
  if (next == HeapSet::kNone) return nullptr;
  number = next + 1;
  return made_[next];
}

std::size_t ActiveHeaps::hostBytes() const {
  const MutexLock lock(mutex_);
  return (made_.capacity() + active_.capacity()) * sizeof(Heap*) + offering_.hostBytes();
}

void ActiveHeaps::audit(const std::vector<Heap*>& heaps) const CISTERN_NO_TSA {
  const MutexLock lock(mutex_);
  Resting sum;
  for (const Heap* heap : heaps) {
    const Heap::Activity& activity = heap->activity;
    CISTERN_CHECK(made_[activity.number] == heap);
    if (!heap->resting()) {
      CISTERN_CHECK(active_[activity.index] == heap);
      CISTERN_CHECK(offering_.contains(activity.number) != heap->withdrawn());
      continue;
    }
    ++sum.heaps;
    addTo(sum.counters.current, heap->counted().current, +1);
    addTo(sum.counters.allocated, heap->counted().allocated, +1);
    CISTERN_CHECK(!heap->offers() || heap->withdrawn() || offering_.contains(activity.number));
    CISTERN_CHECK(heap->counted().current[0] == heap->counted().ceiling[0] &&
                  heap->counted().current[1] == heap->counted().ceiling[1]);
  }
  CISTERN_CHECK(sum.heaps == resting_.heaps);
  CISTERN_CHECK(sum.heaps + active_.size() >= heaps.size());  // some may have been made meanwhile
  CISTERN_CHECK(sum.counters.current == resting_.counters.current);
  CISTERN_CHECK(sum.counters.allocated == resting_.counters.allocated);
}

// ---- A heap's part in it ------------------------------------------------------------------------

void Heap::changed() noexcept {
  unchanged_ = false;
  if (!resting_) return;
  resting_ = false;
  activity.among->wake(*this);
  wakeCaches(*this);
}

void Heap::restIfUnchanged() noexcept {
  constexpr int kPatience = 8;
  looks_unchanged_ = unchanged_ ? looks_unchanged_ + 1 : 0;
  unchanged_ = activity.among != nullptr;
  if (looks_unchanged_ < kPatience || ebbed || !restCaches(*this)) return;
  looks_unchanged_ = 0;
  resting_ = true;
  counters_.ceiling[0] = counters_.current[0];
  counters_.ceiling[1] = counters_.current[1];
  for (std::size_t s = 0; s < kStatCount; ++s)
    counters_.ceiling[kSizeKindCount][s] = counters_.both(s);
  forgetLimits();
  activity.among->rest(*this);
}

void Heap::withdraw() noexcept {
  const bool left_out = small_.freeBlocks().hasLeftOut() || large_.freeBlocks().hasLeftOut();
  if (withdrawn_ || left_out || aside.load(std::memory_order_relaxed) != 0) return;
  if (activity.among == nullptr) return;
  withdrawn_ = true;
  activity.among->withdraw(*this);
}

void Heap::offerAgain() noexcept {
  withdrawn_ = false;
  activity.among->offer(*this);
}

bool Heap::offers() const noexcept {
  if (aside.load(std::memory_order_relaxed) != 0) return true;
  for (const Layout* layout : {&small_, &large_}) {
    if (layout->freeBlocks().hasLeftOut()) return true;  // it may be found later
    const bool whole = layout->freeBlocks().blocks() != layout->splitFreeBlocks();
    if (on_pages_ ? largestFree(layout->freeBlocks()) >= kLeastPage : whole) return true;
  }
  return false;
}

}  // namespace cistern
