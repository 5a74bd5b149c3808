// Setting a pool back, on its way: pool_restore.cpp says how. Included by the files that do it.
//
// Why memory may become a stream's again although another has worked with it since: a free block's
// queued work is all on the stream of the heap that it lies in, and so is that of a block which is
// about to be freed and that no other stream uses. So the memory is complete, or the new block's
// stream comes after the heap's: of itself where they are the same, or made to on the device. A
// page that comes back to another heap is free memory there beyond the block: that heap's stream
// comes after the one that it leaves, too.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "allocator/base/check.hpp"
#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/caching_allocator.hpp"
#include "allocator/engine/pages/comeback.hpp"

namespace cistern {

/// Holds some heaps' locks. Pre: who makes it holds what comes before them.
class HeldHeaps {
 public:
  explicit HeldHeaps(const std::vector<Heap*>& heaps) CISTERN_NO_TSA : heaps_(heaps) {
    for (Heap* heap : heaps_) heap->mutex().lock();
  }
  ~HeldHeaps() CISTERN_NO_TSA {
    for (Heap* heap : heaps_) heap->mutex().unlock();
  }
  HeldHeaps(const HeldHeaps&) = delete;
  HeldHeaps& operator=(const HeldHeaps&) = delete;

 private:
  const std::vector<Heap*>& heaps_;
};

class CachingAllocator::Restoration {
 public:
  /// Pre: `wanted` is in order; it outlives this.
  Restoration(CachingAllocator& allocator, Pool& pool, const std::vector<LiveBlock>& wanted)
      : allocator_(allocator), pool_(pool), wanted_(wanted) {}

  /// Throws PoolError or std::bad_alloc, changing nothing.
  void run();
  /// What has changed. Once each.
  std::vector<void*> freed() noexcept { return std::move(freed_pointers_); }
  std::vector<void*> made() noexcept { return std::move(made_pointers_); }
  /// Of what was freed, what is the caller's to free, as other streams use it.
  const std::vector<Address>& usedElsewhere() const { return used_elsewhere_; }

  /// Calls visit(LiveBlock, Block&) for what the pool's users hold in the heap. Pre: its lock is
  /// held, and its caches are empty.
  template <class Visit>
  static void forEachHeld(Heap& heap, Visit visit) CISTERN_NO_TSA;

 private:
  /// Before the block is made, the stream `later` comes after what the heap's has done.
  struct Need {
    const LiveBlock* wanted;
    Heap* heap;
    Stream later;
  };
  struct Ordered {
    Heap* heap;
    Stream later;
    EpochMark until;
  };
  struct Leaving {
    Heap* heap;
    Block* block;
  };
  struct Making {
    const LiveBlock* wanted;
    Heap* heap;
    HeapSegment* segment;
  };
  static constexpr const char* kGone = "its memory has left the pool";
  static constexpr const char* kInUse = "queued work of several streams still uses part of it";
  static constexpr const char* kForgotten =
      "its stream was forgotten, or never named: a verb has to name it first (recordStream, "
      "allocate)";
  [[noreturn]] static void refuse(const LiveBlock& block, const char* why);
  static bool ownAlone(const Heap& heap, const Block& block);

  bool tryNow();
  // Pre: the locks of all the pool's heaps are held, and the backing's if they are on pages.
  void look();
  void findForgotten();
  void compare();
  bool holds(const Heap* heap) const;
  void checkPlace(const LiveBlock& wanted);
  void checkPages(const LiveBlock& wanted, const Making& place);
  void checkMemory(const LiveBlock& wanted, Heap& heap, const Segment& segment, Address from,
                   Address to, const std::vector<Stream>& users);
  bool isLeaving(const Heap& heap, const Block& block) const;
  void require(const LiveBlock& wanted, Heap& heap, std::optional<std::uint32_t> freed_in,
               Stream later);
  void prepare();
  void carryOut() noexcept;
  void letGo(Heap& heap, Block& block) noexcept;
  void make(const Making& making) noexcept;

  void order(const Need& need);

  CachingAllocator& allocator_;
  Pool& pool_;
  const std::vector<LiveBlock>& wanted_;
  std::vector<Stream> forgotten_;        ///< streams of `wanted_` that are gone, in order
  std::vector<Heap*> heaps_;             ///< of the pool, and locked, during a look; in order
  std::vector<LiveBlock> freed_, made_;  ///< what is to be done, found by the last look
  std::vector<Leaving> leaving_;
  std::vector<Making> making_;
  std::vector<Need> needs_;
  std::optional<pages::Comeback> comeback_;
  std::vector<Ordered> ordered_;  ///< what the device sees to by now
  std::vector<Address> used_elsewhere_;
  std::vector<void*> freed_pointers_, made_pointers_;
  std::map<std::pair<Heap*, SizeKind>, unsigned> prepared_;
};

template <class Visit>
void CachingAllocator::Restoration::forEachHeld(Heap& heap, Visit visit) CISTERN_NO_TSA {
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    for (Segment* s = heap.layout(kind).segments(); s; s = s->next) {
      for (Block* b = s->first; b; b = b->next) {
        if (b->state() != BlockState::kAllocated || b->epoch == Request::kLent) continue;
        visit(LiveBlock{deviceAddress(*b), b->bytes(), holding::requested(*b), heap.streamOf(*b)},
              *b);
      }
    }
  }
}

}  // namespace cistern
