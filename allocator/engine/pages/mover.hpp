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

#include <list>

#include "allocator/engine/core/heap_table.hpp"
#include "allocator/engine/pages/reserve.hpp"

namespace cistern::pages {

class Mover {
 public:
  /// Pre: the heap has a range of the request's kind. `made`: pages for the miss that were made
  /// without the backing's lock; it takes those that it has use for. Null: it may ask for some.
  Mover(State& state, Heap& heap, const Request& request, PagesFrom from,
        std::list<PhysicalPage>* made = nullptr);

  /// Pages of the host that are to be made first, because to make them under the lock takes too
  /// long.
  struct Wanted {
    std::uint32_t units = 0;
    std::uint32_t of_page = 0;  ///< how many of them a page has
  };
  const Wanted& wanted() const { return wanted_; }

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
  bool mayTakeFrom(const Heap& source) const;
  bool hasAny(Heap& source) const;
  std::size_t movableInCapture() const;
  template <class Done, class Visit>
  void forEachOther(Which which, Done done, Visit visit);
  void takeFromOthers(Which which);
  void seek(const std::vector<Heap*>& heaps, std::size_t most);
  bool orderAfterAll();
  HeapTable::Search beginSearch() const;
  std::vector<Heap*> nextSources(HeapTable::Search& search, std::size_t most) const;
  void takeFrom(Heap& source, Which which, std::size_t most);
  /// Whether the gaps cannot be filled, so that no page need be made.
  bool isHopeless();
  /// Whether the device's limit has no room for all that is missing.
  bool lacksRoom() const;
  std::uint64_t roomOnDevice() const;
  /// Whether so many pages of the host are missing that they are to be made first.
  bool wantsHostPages();
  void grow();
  PhysicalPage* create(const Gap& gap);
  PhysicalPage* createOnDevice(std::uint32_t most);
  /// Pages of that kind alone.
  PhysicalPage* createOf(PageKind kind, std::uint32_t units);
  bool mayMix() const;
  PageKind kindBeside() const;
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
  std::list<PhysicalPage>* const made_;
  Wanted wanted_;
  bool mixes_ = false;           ///< mayMix(), in the last attempt
  bool device_full_ = false;     ///< it has had no page for this request of overflow
  bool pressed_ = false;         ///< the device or the limit has refused: time is no matter now
  bool asks_all_ = false;        ///< how many streams are asked is no matter now
  bool frozen_ = false;          ///< the heap is (Rounds), in the last attempt
  bool unordered_ = false;       ///< in the last attempt, the device would not order the streams
  bool page_too_large_ = false;  ///< in any, a page was passed over: no gap had room for it
};

}  // namespace cistern::pages
