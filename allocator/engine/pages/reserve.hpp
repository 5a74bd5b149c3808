// The window of one miss while it is reserved. It owns the plan: which page goes where, which free
// blocks became part of the window, and which units still lack a page. All that it takes out of
// free memory is a hole, so that nobody else gets it, until it is committed or put back. It works
// under the backing's lock. It takes a heap's lock for each step. To commit, it takes those of all
// heaps that pages come from. It holds no heap's lock during a device call.
#pragma once

#include <algorithm>
#include <vector>

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
  void commitStep(const Step& step) noexcept;
  void abandon(PhysicalPage& page) noexcept;

  State& state_;
  Heap& heap_;
  const SizeKind kind_;
  std::vector<Piece> pieces_;
  std::uint64_t last_use_ = 0;  ///< of all that comes into the window
};

}  // namespace cistern::pages
