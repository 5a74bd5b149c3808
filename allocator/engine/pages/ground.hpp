// The ground is the state that everything in this folder works on. Each allocator has one. The
// backing's lock guards it, and is held through a whole miss, device calls included. Mapping calls
// of several threads run one after another in the driver anyway, and none of them waits for the
// device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "allocator/engine/pages/free_page_scan.hpp"
#include "allocator/engine/pages/mapping_table.hpp"

namespace cistern {

struct Engine;

/// The heaps whose pages may come to serve a miss, apart from new pages and the heap's own.
enum class PagesFrom : std::uint8_t {
  kComplete,  ///< of heaps that give to this one's pool, if their last use is complete
  kQueued,    ///< and, at last, those whose last use is queued, in the order of streams
  kLenders,   ///< complete ones, of pools that lend too
};

}  // namespace cistern

namespace cistern::pages {

/// A control loop that sets the size of new pages by what mapping them turns out to cost. It
/// measures the time that misses have taken, beyond what growing in plain pages would have, against
/// a share of wall time. A program that overdraws this share gets larger pages, of which fewer are
/// mapped. A program that does not gets smaller pages, which strand less.
///
/// All in nanoseconds of the device's host clock.
///
///   overdrawn = what was taken beyond plain growth - share * time, within its bounds
///   scale = 2 ^ (overdrawn / kOctave)
class CostLoop {
 public:
  explicit CostLoop(double share) : share_(share) {}

  /// A miss has ended `now` that took `took`, of which growing in plain pages would have `plain`.
  void note(double took, double plain, std::uint64_t now) {
    const double earned = last_ == 0 || now < last_ ? 0 : double(now - last_) * share_;
    last_ = now;
    overdrawn_ = std::clamp(overdrawn_ + std::max(0.0, took - plain) - earned, kLeast, kMost);
  }
  /// The factor by which the size of a new page is multiplied.
  double scale() const { return std::exp2(overdrawn_ / kOctave); }
  /// Whether so much is overdrawn that fewer calls matter more than what pages strand.
  bool muchOverdrawn() const { return overdrawn_ >= 2 * kOctave; }
  /// The scale where cost does not count.
  static double leastScale() { return 0.25; }

 private:
  /// Pages are twice as large for each 20 ms: a start that costs no more, as most do, does not
  /// change them.
  static constexpr double kOctave = 20e6;
  static constexpr double kLeast = -kOctave, kMost = 3 * kOctave;

  const double share_;
  double overdrawn_ = 0;
  std::uint64_t last_ = 0;
};

/// A running mean of what a call took, from a first guess on.
class CallCost {
 public:
  explicit CallCost(double guess) : mean_(guess) {}
  double mean() const { return mean_; }
  void note(double nanoseconds) { mean_ += (nanoseconds - mean_) / kWeight; }

 private:
  static constexpr double kWeight = 64;
  double mean_;
};

/// Free memory of the heap that was last used by that epoch goes back to the device when that epoch
/// is complete.
struct Drain {
  Heap* heap;
  std::uint64_t until;
};

struct Ground {
  explicit Ground(Engine& engine);

  Engine& engine;
  PageCounts counters;
  MappingTable table;
  CostLoop cost;
  // First guesses: what an H200 took for a page of 16 MiB (bench figures in docs/pages.md).
  CallCost create_cost{9'000};
  CallCost map_cost{22'000};
  bool clearing_up = false;             ///< what is done now is not done for a verb on some stream
  bool worked = false;                  ///< a page was made accessible
  bool refused = false;                 ///< none ever was, and the device refuses one that is tried
  std::map<std::size_t, Drain> drains;  ///< by the heap's number
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
  /// Gives a page without a mapping back to the device. False, and it stays a spare, when the
  /// device does not take it.
  bool release(PhysicalPage& page) noexcept;
};

}  // namespace cistern::pages
