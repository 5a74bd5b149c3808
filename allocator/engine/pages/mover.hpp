// Serves one miss: finds a window for the request, brings pages there, and hands the block out. All
// of it happens, or none. Under the backing's lock. It takes heaps' locks one at a time, except to
// commit, when it holds those of all heaps that pages come from.
//
//   take      under the heap's lock: the window's free blocks, and the pages that will come, become
//             holes, so that nobody else gets them                          (reserve.cpp)
//   fill      the gaps with pages: the heap's own free ones, those of other heaps whose last use is
//             complete, new ones, and other heaps' pages still in use, with this stream ordered
//             after that use                                              (sources.cpp)
//   map       the device calls                                              (reserve.cpp)
//   commit    the window becomes free memory, and the request a block of it
//   undo      or everything goes back to where it was
//
// A page may be used at its new address while queued work still uses it at the old one. This is
// safe. Pages of the heap's own were used on the heap's stream, and work that is queued there from
// now on comes later. Pages of other heaps are complete, or an event orders their use before. The
// old mapping stays until that work is complete, and its addresses are a hole until then
// (release.cpp). In a capture that order is the graph's. A graph's uses through the old mapping
// come before or after, as graphs of one pool never run at the same time (page.hpp).
#pragma once

#include <algorithm>
#include <vector>

#include "allocator/engine/core/heap_table.hpp"
#include "allocator/engine/pages/pages_state.hpp"
#include "allocator/engine/pages/window.hpp"

namespace cistern::pages {

/// A page on its way to a place in the window.
struct Step {
  PhysicalPage* page = nullptr;
  std::uint32_t unit = 0;   ///< where in the window's range
  Mapping* from = nullptr;  ///< null for a page that is new, or was mapped nowhere
  Mapping* to = nullptr;    ///< set when it is mapped

  /// The heap that it leaves; null with `from`.
  Heap* source() const { return from ? from->range->home : nullptr; }
};

/// A free block that became part of the reserved window.
struct Piece {
  Address from, to;
  std::uint64_t epoch;  ///< of its last use
};

/// Units of the window without a page. A page that comes may reach beyond `end`, up to `room_end`.
struct Gap {
  std::uint32_t at, end, room_end;

  std::uint32_t lacking() const { return end > at ? end - at : 0; }
  std::uint32_t room() const { return room_end - at; }
};

/// Whether free pages of its own heap are moved for a request before the heap grows. They are not
/// for large requests below 8 MiB, except in a capture or where cost does not count. As a rule,
/// space that an earlier request of that size has freed serves such a request. A page taken from
/// there tears apart what would have served the next.
bool movesOwn(const State& state, const Request& request);

/// The units of a new page at the beginning of the gap (page_size.cpp). `pressed`: the device or
/// the limit has refused, so that time is no matter now.
std::uint32_t newPageUnits(const State& state, const Request& request, const Gap& gap,
                           bool pressed);

/// The window of one miss while it is reserved. It owns the plan: which page goes where, which free
/// blocks became part of the window, and which units still lack a page. All that it takes out of
/// free memory is a hole, so that nobody else gets it, until it is committed or put back. It works
/// under the backing's lock. It takes a heap's lock for each step. To commit, it takes those of all
/// heaps that pages come from. It holds no heap's lock during a device call.
class Reservation {
 public:
  Reservation(State& state, Heap& heap, SizeKind kind) : state_(state), heap_(heap), kind_(kind) {}

  /// Reserves a window that was found under the same hold of the heap's lock. The pages of stale
  /// mappings in it come there at once, and stay. Pre: the heap's lock is held. Throws
  /// std::bad_alloc, changing nothing else.
  void take(const Window& window);
  /// Takes the pages of further steps out of the source's free memory. Pre: the source's
  /// lock is held, and a scan under the same hold has found their mappings. Throws std::bad_alloc,
  /// changing nothing.
  void detach(Heap& source, const std::vector<Step>& steps);
  /// Some of the memory may be in use on the heap's stream until that epoch.
  void noteUse(std::uint64_t epoch) { last_use_ = std::max(last_use_, epoch); }
  /// Maps each page at its place. False when the device refuses; then some are
  /// mapped. Throws std::bad_alloc.
  bool map();
  /// Makes the window free memory of the heap, and the request a block of it. Throws
  /// std::bad_alloc, changing nothing. Pre: all is mapped.
  Block* commit(const Request& request);
  /// Everything goes back to where it was, and pages that were in no heap go back to the device.
  /// A page that the device does not take back is counted as the heap's.
  void undo() noexcept;
  std::uint32_t gapUnits() const {
    std::uint32_t units = 0;
    for (const Gap& gap : gaps) units += gap.lacking();
    return units;
  }

  Window window;
  std::vector<Step> steps;
  std::vector<Gap> gaps;
  std::uint64_t backed_before = 0;  ///< memory of the heap in layouts of this kind

 private:
  Block* reviveStale() CISTERN_REQUIRES(heap_.mutex());
  void reservePieces(Block* first) CISTERN_REQUIRES(heap_.mutex());
  void noteGaps();
  void noteRoomBeyond() CISTERN_REQUIRES(heap_.mutex());
  bool mapOne(Step& step);
  bool allowAccess(std::size_t first, std::size_t last);
  void expectHooks();
  void commitStep(const Step& step) noexcept;
  void abandon(PhysicalPage& page) noexcept;

  State& state_;
  Heap& heap_;
  const SizeKind kind_;
  std::vector<Piece> pieces_;
  std::uint64_t last_use_ = 0;  ///< of all that comes into the window
};

/// Pages of the host that are to be made before a miss, because to make them under the backing's
/// lock takes too long.
struct WantedPages {
  std::uint32_t units = 0;
  std::uint32_t of_page = 0;  ///< how many of them a page has
};

class Mover {
 public:
  /// Pre: the heap has a range of the request's kind. `wanted`: where the miss says that it wants
  /// pages of the host as spares first. Null: it makes all pages itself.
  Mover(State& state, Heap& heap, const Request& request, PagesFrom from,
        WantedPages* wanted = nullptr);

  /// The block; null when it cannot be had, or pages are wanted. Throws std::bad_alloc.
  /// PageBacking::place says what has changed when there is no block.
  Block* place();
  /// The block, where the request was placed two rounds ago (Rounds), if pages
  /// that lie free can come back there without a device call. Else one out of free memory; null
  /// when there is none. Throws std::bad_alloc, changing nothing.
  Block* placeAsBefore();

 private:
  Block* attempt(bool fresh_only, bool waits);
  /// Serves the request from free memory, or reserves a window for it: then null, and `found`.
  Block* takeWindow(bool fresh_only, bool& found);
  /// `beside`: the heap whose pages may come back, whose lock is held; or null.
  Block* takeWindow(bool fresh_only, bool& found, Heap* beside) CISTERN_REQUIRES(heap_.mutex());
  std::optional<Window> findWindow(bool fresh_only, Heap* beside) CISTERN_REQUIRES(heap_.mutex());
  void noteCost();

  // ---- Where the pages come from (sources.cpp)

  /// Finds a page for every gap. False when it cannot; then the caller puts back what it found.
  /// `waits`: for other streams, rather than grow. Throws std::bad_alloc.
  bool fillGaps(bool waits);
  /// Whether a capture is under way into the heap's pool. Free memory there is complete, or the
  /// capture's own.
  bool captured() const;
  enum class Which : std::uint8_t { kComplete, kAny };
  bool freeze() CISTERN_REQUIRES(heap_.mutex());
  bool thaw();
  void giveBackSmall();
  bool mayGive(Heap& source) const;
  std::size_t movableInCapture() const;
  template <class Done, class Visit>
  void forEachOther(Which which, Done done, Visit visit);
  void takeFromOthers(Which which);
  bool orderAfterAll();
  std::vector<Heap*> nextSources(HeapTable::Search& search, std::size_t most) const;
  void takeFrom(Heap& source, Which which, std::size_t most);
  /// Whether the gaps cannot be filled, so that no page need be made.
  bool isHopeless();
  /// Whether the device's limit has no room for all that is missing.
  bool lacksRoom() const;
  /// Whether so many pages of the host are missing that they are to be made first.
  std::uint64_t roomOnDevice() const;
  bool wantsHostPages();
  void grow();
  PhysicalPage* create(const Gap& gap);
  /// A page that neither a heap nor the window has, or null. Each is looked at once an attempt.
  PhysicalPage* findSpare(MemoryKind kind, std::uint32_t most);
  PhysicalPage* createOnDevice(std::uint32_t most);
  /// Pages of that kind alone.
  PhysicalPage* createOf(MemoryKind kind, std::uint32_t units);
  bool mayMix() const;
  MemoryKind kindBeside() const;
  /// The heap beside this one, if free pages of the device may come from there; else null.
  Heap* besideInReach() const;
  void takeFromBeside();
  bool isOfUse(const PhysicalPage& page) const;
  bool isFrozen(const Mapping& mapping, const Heap& source) const;

  State& state_;
  Heap& heap_;
  const Request& request_;
  const PagesFrom from_;
  const std::uint64_t began_ns_;
  std::uint64_t asked_ns_ = 0;  ///< of this miss, asking streams; page size does not affect it
  Reservation reserved_;
  WantedPages* const wanted_;
  bool mixes_ = false;           ///< mayMix(), in the last attempt
  bool device_full_ = false;     ///< it has had no page for this request of overflow
  bool pressed_ = false;         ///< the device or the limit has refused: time is no matter now
  bool asks_all_ = false;        ///< how many streams are asked is no matter now
  bool frozen_ = false;          ///< the heap is (Rounds), in the last attempt
  bool unordered_ = false;       ///< in the last attempt, the device would not order the streams
  bool page_too_large_ = false;  ///< in any, a page was passed over: no gap had room for it
  /// The first that findSpare has not looked at, in this attempt.
  std::optional<std::list<PhysicalPage>::iterator> next_spare_;
};

}  // namespace cistern::pages
