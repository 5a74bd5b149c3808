// A pool is set back: all of it, or nothing. Pages that lay elsewhere then come back, as far as
// they are still mapped there. Those that a graph has captured are.
//
//   look        what is to be freed and made, whether all of that memory is the pool's still, and
//               which streams have to come after which
//   ask, order  where streams have to; then look again, as others go on meanwhile
//   carry out   under the same locks as the look that found nothing amiss
//
// Memory may become a stream's again although another has worked with it since. This is safe. A
// free block's queued work is all on the stream of the heap that it lies in. So is that of a block
// which is about to be freed and that no other stream uses. So the memory is complete, or the new
// block's stream comes after the heap's: they are the same, or the device orders them. A page that
// comes back to another heap is free memory there beyond the block. So that heap's stream comes
// after the one that it leaves, too.
#include "pools/restoration.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/check.hpp"
#include "allocator/base/thread_number.hpp"
#include "allocator/engine/pages/placing.hpp"
#include "allocator/engine/paths/slow_path.hpp"
#include "allocator/reports/accounting.hpp"

namespace cistern {
namespace {

constexpr const char* kGone = "its memory has left the pool";
constexpr const char* kInUse = "queued work of several streams still uses part of it";
constexpr const char* kHeld = "a hold keeps its memory at another address of the pool";
constexpr const char* kForgotten =
    "its stream was forgotten, or never named: a verb has to name it first (recordStream, "
    "allocate)";

[[noreturn]] void refuse(const LiveBlock& block, const char* why) {
  throw PoolError(fmt::format("cannot set back its block of {} bytes at {:#x}: {}", block.bytes,
                              block.address, why));
}

// Whether liveBlocks can have returned that: they are in order, in granules, and each within the
// address space.
bool areLiveBlocks(const std::vector<LiveBlock>& blocks) {
  Address free_from = 0;
  for (const LiveBlock& block : blocks) {
    const bool whole = block.address % kGranule == 0 && block.bytes % kGranule == 0;
    if (!whole || block.address < free_from || block.requested == 0) return false;
    if (block.requested > block.bytes || block.bytes > kLargestRequest) return false;
    free_from = block.address + block.bytes;
  }
  return free_from < Address{1} << 57;
}

bool isUsedElsewhere(const Block& block) {
  return block.use.uses != nullptr || block.use.stream != heapOf(block).stream();
}

class Restoration {
 public:
  /// Pre: `wanted` is in order.
  Restoration(Engine& engine, Pool& pool, const std::vector<LiveBlock>& wanted)
      : engine_(engine), pool_(pool), wanted_(wanted) {}

  // It asks whether a stream is forgotten before it locks any heap. Nothing can be done on such a
  // stream: it may have been destroyed, and its handle may now be another's that nobody has named.
  // Reporting the changes takes no host memory.
  CheckpointDelta run() {
    {
      const MutexLock still(engine_.pages.mutex());
      for (const LiveBlock& block : wanted_) {
        if (engine_.streams.look(block.stream).forgotten) forgotten_.insert(block.stream);
      }
      for (int tries = 0; !tryNow(); ++tries) {
        if (tries == 2) refuse(*needs_.begin()->second, kInUse);
        tries == 0 ? refresh() : order();
      }
    }
    for (const Address address : used_elsewhere_) slow_path::freeAt(engine_, address, nullptr);
    return std::move(done_);
  }

 private:
  /// The work that the heap's stream has done comes before the other stream's.
  using Order = std::pair<Heap*, Stream>;
  struct Held {
    Address address;
    Block* block;
  };
  /// The place of a page whose memory a block needs, and the stream of the heap that it comes to.
  struct Elsewhere {
    const pages::Mapping* now;
    const LiveBlock* wanted;
    Stream owner;
  };

  bool tryNow() {
    const MutexLock holding_several(engine_.heaps_mutex);
    heaps_ = pool_.heaps();
    const HeapLocks locks(engine_.heaps_mutex, heaps_);
    look();
    if (!needs_.empty()) return false;
    prepare();
    carryOut();
    return true;
  }

  void refresh() {
    std::vector<Heap*> heaps;
    for (const auto& [need, wanted] : needs_) heaps.push_back(need.first);
    heaps.erase(std::unique(heaps.begin(), heaps.end()), heaps.end());
    engine_.progress.refresh(heaps);
  }

  // Epochs end first: what is freed meanwhile waits for another look.
  void order() {
    std::map<Order, std::uint64_t> ended;
    std::set<Stream> laters;
    for (const auto& [need, wanted] : needs_) {
      const MutexLock lock(need.first->mutex());
      ended[need] = need.first->endedEpoch();
      laters.insert(need.second);
    }
    std::erase_if(laters, [&](Stream later) { return !engine_.progress.orderAfterAll(later); });
    for (const auto& [need, until] : ended) {
      if (laters.contains(need.second)) ordered_[need] = until;
    }
  }

  // ---- Looking ---------------------------------------------------------------------------------

  // Each look begins from nothing. The pool's user ensures that nothing else happens in the pool.
  // But its memory may go back to the device, be lent, or, if the pool is draining, move elsewhere.
  void look() {
    leaving_.clear();
    making_.clear();
    needs_.clear();
    places_.clear();
    returning_.clear();
    elsewhere_.clear();
    search_.beginAnew();
    compare(held());
    for (const LiveBlock* wanted : making_) checkPlace(*wanted);
    checkElsewhere();
  }

  // The blocks that the pool's users hold, by address.
  std::vector<Held> held() {
    std::vector<Held> all;
    for (Heap* heap : heaps_) {
      heap->mutex().assertHeld();
      if (&heap->pool() != &pool_) continue;  // it has left since the heaps were listed
      if (pool_.asleep) throw PoolError("cannot be set back while it is asleep: wake it first");
      if (heap->completion().captured())
        throw PoolError("cannot be set back while it is captured into");
      forEachHeld(*heap, [&](Block& block) { all.push_back({deviceAddress(block), &block}); });
    }
    std::ranges::sort(all, {}, &Held::address);
    return all;
  }

  void compare(const std::vector<Held>& held) {
    auto there = held.begin();
    for (const LiveBlock& wanted : wanted_) {
      for (; there != held.end() && there->address < wanted.address; ++there)
        leaving_.push_back(*there);
      const bool stays = there != held.end() && there->address == wanted.address &&
                         liveOf(*there->block) == wanted;
      stays ? void(++there) : making_.push_back(&wanted);
    }
    leaving_.insert(leaving_.end(), there, held.end());
  }

  // HeapLocks has sorted the heaps by number.
  bool holds(const Heap* heap) const {
    return heap && &heap->pool() == &pool_ &&
           std::ranges::binary_search(heaps_, heap->number(), {}, &Heap::number);
  }
  bool leaves(const Block& block) const {
    return std::ranges::binary_search(leaving_, deviceAddress(block), {}, &Held::address) &&
           !isUsedElsewhere(block);
  }

  // The block's place is the pool's still, or its pages come back to it, and nobody uses it.
  void checkPlace(const LiveBlock& wanted) {
    if (forgotten_.contains(wanted.stream)) refuse(wanted, kForgotten);
    const auto [segment, heap] = engine_.locate(wanted.address);
    if (!holds(heap)) refuse(wanted, kGone);
    const Address from = segment->placeOf(wanted.address), to = from + wanted.bytes;
    if (to > segment->end()) refuse(wanted, kGone);
    checkMemory(wanted, *heap, *segment, from, to, {wanted.stream});
    if (heap->onPages())
      checkPages(wanted, *heap, static_cast<pages::PageRange&>(*segment), from, to);
  }

  void checkPages(const LiveBlock& wanted, Heap& heap, const pages::PageRange& range, Address from,
                  Address to) {
    const std::uint32_t end = range.unitAt(to + pages::kUnit - 1);
    for (std::uint32_t unit = range.unitAt(from); unit < end;) {
      pages::Mapping* const at = range.slots[unit];
      if (at == nullptr || !at->accessible || at->page->current == nullptr) refuse(wanted, kGone);
      const auto [place, fresh] = places_.try_emplace(at->page, at);
      const pages::Mapping& now = *at->page->current;
      Heap& source = *now.range->home;
      if (place->second != at || !holds(&source)) refuse(wanted, kGone);
      unit = at->end_unit;
      if (at->isCurrent()) continue;
      if (now.holds.fixed != 0 || source.pool().isHeld()) refuse(wanted, kHeld);
      if (fresh) returning_.push_back(at);
      elsewhere_.push_back({&now, &wanted, heap.stream()});
    }
  }

  // Each page once for each stream, in the order of where the pages are now, for the search.
  void checkElsewhere() {
    const auto key = [](const Elsewhere& one) {
      return std::pair(one.now->place(), one.wanted->stream);
    };
    std::ranges::stable_sort(elsewhere_, {}, key);
    const auto same = [&](const Elsewhere& a, const Elsewhere& b) { return key(a) == key(b); };
    elsewhere_.erase(std::unique(elsewhere_.begin(), elsewhere_.end(), same), elsewhere_.end());
    search_.beginAnew();
    for (const auto& [now, wanted, owner] : elsewhere_) {
      checkMemory(*wanted, *now->range->home, *now->range, now->place(), now->placeEnd(),
                  {wanted->stream, owner});
    }
  }

  // All of it that has memory must be free, or be about to be; `users` are to come after what its
  // heap's stream has done with it.
  void checkMemory(const LiveBlock& wanted, Heap& heap, const Segment& segment, Address from,
                   Address to, const std::vector<Stream>& users) {
    const Block* b = search_.covering(segment, from);
    for (; b && b->address() < to; b = b->next) {
      if (b->isHole()) continue;
      if (!b->isFree() && !leaves(*b)) refuse(wanted, kInUse);
      for (const Stream user : users) require(wanted, heap, *b, user);
    }
  }

  // Free memory was used until its epoch. Memory about to be freed was used until now, and nobody
  // goes on using it.
  void require(const LiveBlock& wanted, Heap& heap, const Block& memory, Stream later) {
    if (later == heap.stream()) return;
    heap.mutex().assertHeld();
    const Completion& known = heap.completion();
    const std::uint64_t used = known.epochOf(memory.epoch);
    if (memory.isFree() && known.complete(used)) return;
    const auto it = ordered_.find({&heap, later});
    if (it != ordered_.end() && (!memory.isFree() || used <= it->second)) return;
    needs_.try_emplace({&heap, later}, &wanted);
  }

  // ---- Carrying out ----------------------------------------------------------------------------

  // All that may fail comes before anything changes.
  void prepare() {
    for (const auto& [address, leaving] : leaving_) done_.freed.push_back(toPointer(address));
    for (const LiveBlock* made : making_) done_.made.push_back(toPointer(made->address));
    used_elsewhere_.reserve(leaving_.size());
    const std::size_t changes = making_.size() + returning_.size();  // at most, in any heap
    const auto prepare = [&](Heap& heap) {
      heap.mutex().assertHeld();
      pages::prepareMoves(heap, changes);
    };
    std::vector<Heap*> changed;
    for (const LiveBlock* made : making_) changed.push_back(engine_.locate(made->address).heap);
    for (const pages::Mapping* at : returning_) changed.push_back(at->page->current->range->home);
    std::ranges::sort(changed, {}, &Heap::number);
    changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
    for (Heap* heap : changed) prepare(*heap);
  }

  // Blocks that other streams use are freed as ever, once the locks are given up.
  void carryOut() noexcept {
    for (const auto& [address, leaving] : leaving_) {
      Heap& heap = heapOf(*leaving);
      heap.mutex().assertHeld();
      if (isUsedElsewhere(*leaving)) {
        used_elsewhere_.push_back(address);
      } else {
        heap.frees().note(address, leaving->granules, nullptr, threadNumber());
        heap.release(*leaving, engine_.now());
      }
    }
    engine_.pages.mutex().assertHeld();
    pages::comeBack(engine_.pages.state(), returning_);
    search_.beginAnew();
    for (const LiveBlock* made : making_) make(*made);
  }

  void make(const LiveBlock& block) noexcept {
    const auto [segment, heap] = engine_.locate(block.address);
    const Address place = segment->placeOf(block.address);
    Block* const free = search_.covering(*segment, place);
    CISTERN_CHECK(free && free->isFree() && place + block.bytes <= free->end());
    const Request request{block.requested, std::uint32_t(block.bytes >> kGranuleShift),
                          segment->kind, block.stream, &pool_};
    heap->mutex().assertHeld();
    search_.goOnFrom(*heap->allocateFrom(*free, request, place));
  }

  Engine& engine_;
  Pool& pool_;
  const std::vector<LiveBlock>& wanted_;
  std::set<Stream> forgotten_;              ///< of the streams of `wanted_`
  std::map<Order, std::uint64_t> ordered_;  ///< what the device sees to by now: until that epoch
  std::vector<Heap*> heaps_;                ///< of the pool, and locked, during a look
  // The work to do, as the last look has found it.
  std::vector<Held> leaving_;  ///< by address
  std::vector<const LiveBlock*> making_;
  std::map<Order, const LiveBlock*> needs_;  ///< before that block can be made
  std::unordered_map<const pages::PhysicalPage*, const pages::Mapping*> places_;  ///< one each
  std::vector<Elsewhere> elsewhere_;
  AscendingSearch search_;
  std::vector<pages::Mapping*> returning_;  ///< of places_, for pages that lie elsewhere now
  CheckpointDelta done_;
  std::vector<Address> used_elsewhere_;  ///< of what leaves
};

}  // namespace

CheckpointDelta restore(Engine& engine, Pool& pool, const std::vector<LiveBlock>& wanted) {
  if (!areLiveBlocks(wanted))
    throw PoolError("cannot be set back: its blocks are not as they were said");
  return Restoration(engine, pool, wanted).run();
}

}  // namespace cistern
