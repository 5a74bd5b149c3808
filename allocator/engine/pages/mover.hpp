// Serves one miss: finds a window for the request, brings pages there, and hands the block out. All
// of it happens, or none.
//
//   reserve   under the heap's lock: the window's free blocks, and the pages that will come, become
//             holes, so that nobody else gets them                          (reserve.cpp)
//   gather    pages for what has none: the heap's own free ones, those of other heaps whose last
//   use
//             is complete, new ones, those of other heaps in the order of streams  (sources.cpp)
//   map       the device calls                                              (map_calls.cpp)
//   commit    the window becomes free memory, and the request a block of it (mover.cpp)
//   undo      or everything goes back to where it was
//
// Why a page may be used at its new address while queued work still uses it at the old one: pages
// of the heap's own were used on the heap's stream, and what is queued there from now on comes
// later; those of other heaps are complete, or ordered before by an event. The old mapping stays
// until that work is complete, and its addresses are a hole until then (release.cpp). In a capture
// that order is the graph's; and what a graph reaches through the old mapping comes before or
// after, as graphs of one pool never run at the same time (page.hpp).
#pragma once

#include <vector>

#include "allocator/engine/pages/ground.hpp"
#include "allocator/engine/pages/placing.hpp"
#include "allocator/engine/pages/window.hpp"

namespace cistern::pages {

/// A page on its way to a place in the window.
struct Step {
  PhysicalPage* page = nullptr;
  std::uint32_t unit = 0;   ///< where in the window's range
  Mapping* from = nullptr;  ///< null for a page that is new, was mapped nowhere, or was aside
  Mapping* to = nullptr;    ///< set from the start when it is revived, else when it is mapped
  Heap* source = nullptr;   ///< where `from` belongs; null with it
  std::uint32_t epoch = 0;  ///< what its memory is stamped with in this heap
  bool revived = false;
};

/// A free block that became part of the reserved window.
struct Piece {
  Address from, to;
  std::uint32_t epoch;
};

/// Units of the window without a page. One that comes may reach beyond `end`, up to `room_end`.
struct Gap {
  std::uint32_t at, end, room_end;
};

class Mover {
 public:
  /// Pre: the backing's lock is held, and the heap has a range of the request's kind.
  Mover(Ground& ground, Heap& heap, const Request& request, PagesFrom from)
      : ground_(ground), heap_(heap), request_(request), from_(from), number_(++ground.misses) {}

  /// The block; null when it cannot be had, and then all is as it was but for pages returned.
  Block* serve();

 private:
  enum class Which : std::uint8_t { kComplete, kAny };
  Block* attempt(bool fresh_only);

  // reserve.cpp
  std::optional<Window> findWindow(bool fresh_only) CISTERN_REQUIRES(heap_.mutex());
  void reserve(const Window& window) CISTERN_REQUIRES(heap_.mutex());
  void prepare() CISTERN_REQUIRES(heap_.mutex());
  void reservePieces() CISTERN_REQUIRES(heap_.mutex());
  void reserveHoles() CISTERN_REQUIRES(heap_.mutex());
  void noteGap(std::uint32_t from, std::uint32_t to);
  void detach(Heap& source, std::vector<Step>& steps) CISTERN_REQUIRES(source.mutex());
  void undo() noexcept;
  void putUnusedAside() noexcept;

  // sources.cpp
  bool gather();
  void giveBackForGrowth();
  std::uint64_t roomLeft() const;
  bool captured() const;
  bool gives(const Heap& source) const;
  bool hasAny(Heap& source) const;
  void takeOwn(std::size_t most);
  void takeFromOthers(std::size_t most, Which which);
  bool orderAfter(Heap& source);
  std::size_t takeFrom(Heap& source, Which which, std::size_t most)
      CISTERN_REQUIRES(source.mutex());
  void grow();
  std::uint32_t newPageUnits(const Gap& gap) const;
  std::uint32_t mostFor(const Gap& gap) const;
  PhysicalPage* spareFor(std::uint32_t most_units);
  PhysicalPage* create(std::uint32_t units);
  std::uint32_t gapUnits() const;

  // page_size.cpp
  std::size_t movableInCapture() const;
  void noteCost();
  std::uint32_t pageUnits(std::uint32_t gap) const;

  // map_calls.cpp
  bool mapAll();
  bool mapOne(Step& step);
  bool allowAccess(std::size_t from, std::size_t to);
  void unmapAll() noexcept;
  void abandon(PhysicalPage& page) noexcept;

  Block* commit();
  void commitStep(Step& step) noexcept;

  Ground& ground_;
  Heap& heap_;
  const Request& request_;
  const PagesFrom from_;
  Window window_;
  std::vector<Step> steps_;
  std::vector<Step> revived_;  ///< with room for all of the window's
  std::vector<Piece> pieces_;
  std::vector<Gap> gaps_;
  const std::uint64_t number_;   ///< of the miss
  bool brought_ = false;         ///< some pages were aside until this miss
  bool pressed_ = false;         ///< the device or the limit has refused: time is no matter now
  bool unordered_ = false;       ///< the device would not order the streams
  bool waits_ = false;           ///< for other streams, rather than grow
  bool page_too_large_ = false;  ///< one was passed over because no gap had room for it
  bool made_late_ = false;       ///< new pages are late ones: see parking.hpp
  std::uint64_t began_ns_ = 0;
  std::uint64_t backed_before_ = 0;  ///< memory of the heap in layouts of this kind
};

}  // namespace cistern::pages
