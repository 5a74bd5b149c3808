// The state that everything in this folder works on. Each allocator has one. The backing's lock
// guards it, and is held through a whole miss, device calls included. Mapping calls
// of several threads run one after another in the driver anyway, and none of them waits for the
// device. Only many pages of the host are made without it (PageBacking::place).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "allocator/engine/core/core.hpp"
#include "allocator/engine/ground/limit.hpp"
#include "allocator/engine/pages/cost.hpp"
#include "allocator/engine/pages/free_page_scan.hpp"
#include "allocator/engine/pages/mapping_table.hpp"

namespace cistern {

/// The heaps whose pages may come to serve a miss, apart from new pages and the heap's own.
enum class PagesFrom : std::uint8_t {
  kComplete,  ///< heaps that give to this one's pool: pages whose last use is complete
  kQueued,    ///< at last also pages whose last use is queued; this heap's stream waits for it
  kLenders,   ///< pages whose last use is complete, also from pools that lend
  kNoNew,     ///< as kComplete; no new page is made
};

}  // namespace cistern

namespace cistern::pages {

/// Free memory of the heap that was last used in the epoch `until`, or earlier, goes back to the
/// device when that epoch is complete.
struct Drain {
  Heap* heap;
  std::uint64_t until;
};

/// What is noted of a heap.
struct HeapNotes {
  /// A heap whose misses take so many times their share freezes. For less time, a frozen heap's
  /// memory is too dear; if much stays in use, it is dearer.
  static constexpr double kFreezes = 4, kFreezesLate = 16;

  /// `share`: of wall time, that misses may take.
  explicit HeapNotes(double share) : restless(kFreezes * share, HUGE_VAL) {}
  /// Misses count from now on. `much`: the heap freezes at kFreezesLate.
  void countAnew(double share, bool much) {
    late = much;
    restless = CostController((much ? kFreezesLate : kFreezes) * share, HUGE_VAL);
  }

  /// The newest range of the kind, or null.
  PageRange*& newestRange(SizeKind kind) { return newest[std::size_t(kind)]; }
  /// The most memory that the heap had for the kind, in this pool. In units.
  std::uint32_t& mostBacked(SizeKind kind) { return most_backed[std::size_t(kind)]; }

  std::array<PageRange*, kSizeKindCount> newest{};
  std::array<std::uint32_t, kSizeKindCount> most_backed{};
  std::uint32_t incarnation = 0;  ///< of the heap, that most_backed is of
  bool late = false;              ///< the heap freezes at kFreezesLate
  CostController restless;        ///< of misses since the heap last was at rest, or froze
};

/// The notes, by the heaps' numbers. The first note of a heap gives notes to all earlier heaps too.
class NotesTable {
 public:
  /// `share`: of wall time, that misses may take.
  explicit NotesTable(double share) : share_(share) {}
  /// Throws std::bad_alloc if nothing was noted of the heap so far.
  HeapNotes& of(const Heap& heap) {
    const std::size_t number = heap.number();
    while (all_.size() <= number) [[unlikely]] all_.push_back(std::make_unique<HeapNotes>(share_));
    HeapNotes& notes = *all_[number];
    if (notes.incarnation != heap.incarnation()) {
      notes.incarnation = heap.incarnation();
      notes.most_backed = {};
      notes.countAnew(share_, false);
    }
    return notes;
  }
  std::size_t hostBytes() const { return all_.size() * (sizeof(HeapNotes) + sizeof(void*)); }

 private:
  const double share_;
  std::vector<std::unique_ptr<HeapNotes>> all_;
};

struct State {
  explicit State(Core& core);

  Core& core;
  NotesTable notes;  ///< of heaps
  PageCounts counters;
  MappingTable table;
  CostController cost;
  // First guesses: what an H200 took for a page in a training step (docs/pages.md).
  CallCost create_cost{50'000};
  CallCost map_cost{46'000};
  bool clearing_up = false;             ///< what is done now is not done for a verb on some stream
  bool worked = false;                  ///< a page of the device was made accessible
  bool refused = false;                 ///< none ever was, and the device refuses one that is tried
  std::map<std::size_t, Drain> drains;  ///< by the heap's number
  MemoryHooks::Owner* owner = nullptr;  ///< finishes withdrawn mappings
  std::uint64_t number = 0;  ///< of the last scan, window or miss: each has one of its own

  /// Whether free pages may move at all.
  bool recycles() const;
  /// Learns how far a heap's stream has come. Clearing up asks events only: the stream's owner may
  /// be destroying it at this moment.
  void refresh(Heap& heap);
  /// Makes room for the whole request behind what the heap's newest range of its kind ever used, in
  /// that range or in a new one. False when there is no room, and the heap has no
  /// range of the kind. Throws std::bad_alloc.
  bool makeRoom(Heap& heap, const Request& request);
  /// Counts the page among the reserved bytes of that heap from now on, or of none. Pre: the locks
  /// of both heaps, the one that counted it and the new one, are held.
  void count(PhysicalPage& page, Heap* heap, SizeKind kind) noexcept;
  /// Unmaps and forgets a mapping. False when the device does not unmap it. Pre: removable.
  bool remove(Mapping& mapping) noexcept;
  /// Hooks are to hear of a mapping before the device unmaps it: it is withdrawn. False if none
  /// need to. Pre: removable, or its page falls asleep, or withdrawn already.
  bool withdraw(Mapping& mapping) noexcept;
  /// Withdraws or removes the mapping. False when the device does not unmap it. Pre: as both.
  bool takeAway(Mapping& mapping) noexcept { return withdraw(mapping) || remove(mapping); }
  /// What hooks hear of a page in that range, from `unit` on.
  static MemoryNotice noticeOf(const PhysicalPage& page, const PageRange& range,
                               std::uint32_t unit);
  /// Gives a page that is mapped nowhere back to the device. False, changing nothing, when the
  /// device does not take it.
  bool returnToDevice(PhysicalPage& page) noexcept;
  /// The same for a page without a mapping, which is forgotten, or stays a spare.
  bool release(PhysicalPage& page) noexcept;
};

/// Makes a page, and counts it; it becomes the last in `made`. False if the device refuses, or if
/// the limit, or the host, has no room. Throws std::bad_alloc, changing nothing.
bool makePage(Core& core, MemoryKind kind, std::uint32_t units, std::list<PhysicalPage>& made);

}  // namespace cistern::pages
