// Setting a pool back, on its way: restoration.cpp says how, and nothing else includes this.
//
// Why memory may become a stream's again although another has worked with it since: a free block's
// queued work is all on the stream of the heap that it lies in, and so is that of a block which is
// about to be freed and that no other stream uses. So the memory is complete, or the new block's
// stream comes after the heap's: of itself where they are the same, or made to on the device. A
// page that comes back to another heap is free memory there beyond the block: that heap's stream
// comes after the one that it leaves, too.
#pragma once

#include <map>
#include <vector>

#include "allocator/engine/pages/comeback.hpp"
#include "allocator/engine/pools/pool_table.hpp"

namespace cistern {

class Restoration {
 public:
  /// Pre: `wanted` is in order; it, `freed` and `made`, which get what changed, outlive this.
  Restoration(Core& core, Pool& pool, const std::vector<LiveBlock>& wanted,
              std::vector<void*>& freed, std::vector<void*>& made)
      : core_(core), pool_(pool), wanted_(wanted), freed_(freed), made_(made) {}

  /// Throws PoolError or std::bad_alloc, changing nothing.
  void run();
  /// Of what was freed, what is the caller's to free, as other streams use it.
  const std::vector<Address>& usedElsewhere() const { return used_elsewhere_; }

  /// Calls visit(LiveBlock, Block&) for what the pool's users hold in the heap. Pre: its lock is
  /// held, and its caches are empty.
  template <class Visit>
  static void forEachHeld(Heap& heap, Visit visit) CISTERN_REQUIRES(heap.mutex());

 private:
  /// Before the block is made, the stream `later` comes after what the heap's has done.
  struct Need {
    const LiveBlock* wanted;
    Heap* heap;
    Stream later;
  };
  struct Ordered : Need {
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

  void findForgotten();
  bool tryNow();
  void order(const Need& need);
  // Pre: the locks of all the pool's heaps are held, and the backing's if they are on pages.
  void look();
  void compare(std::vector<bool>& there);
  bool holds(const Heap* heap) const;
  void checkPlace(const LiveBlock& wanted);
  void checkPages(const LiveBlock& wanted, const Making& place);
  void checkMemory(const LiveBlock& wanted, Heap& heap, const Segment& segment, Address from,
                   Address to, const std::vector<Stream>& users);
  bool isLeaving(const Block& block) const;
  void require(const LiveBlock& wanted, Heap& heap, const Block& memory, Stream later);
  void prepare();
  void carryOut() noexcept;
  void letGo(Heap& heap, Block& block) noexcept;
  void make(const Making& making) noexcept;

  Core& core_;
  Pool& pool_;
  const std::vector<LiveBlock>& wanted_;
  std::vector<void*>&freed_, &made_;
  std::map<Stream, bool> forgotten_;  ///< of the streams of `wanted_`
  std::vector<Heap*> heaps_;          ///< of the pool, and locked, during a look
  // What is to be done, as the last look has found it.
  std::map<Address, Leaving> leaving_;
  std::vector<Making> making_;
  std::vector<Need> needs_;
  pages::Comeback comeback_;
  std::vector<Ordered> ordered_;  ///< what the device sees to by now
  std::vector<Address> used_elsewhere_;
};

template <class Visit>
void Restoration::forEachHeld(Heap& heap, Visit visit) {
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    for (Segment* s = heap.layout(kind).segments(); s; s = s->next) {
      for (Block* b = s->first; b; b = b->next) {
        if (b->state() != BlockState::kAllocated || b->epoch == Request::kLent) continue;
        visit(LiveBlock{deviceAddress(*b), b->bytes(), ownership::requested(*b), heap.streamOf(*b)},
              *b);
      }
    }
  }
}

}  // namespace cistern
