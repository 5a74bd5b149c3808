// Where the pages for one miss come from: free ones of its heap, those of other heaps whose last
// use is complete, new ones, and those of other heaps in the order of streams. It owns what is
// known of the attempt: what has refused, and what was passed over. Under the backing's lock; it
// takes heaps' locks one at a time.
#pragma once

#include "allocator/engine/pages/reserve.hpp"

namespace cistern::pages {

class Sources {
 public:
  Sources(Ground& ground, Heap& heap, const Request& request, PagesFrom from, Reservation& reserved)
      : ground_(ground), heap_(heap), request_(request), from_(from), reserved_(reserved) {}

  /// Finds a page for every gap. False when it cannot; then the caller puts back what it found.
  /// `waits`: for other streams, rather than grow. `late`: new pages are late ones (aside.hpp).
  /// Throws std::bad_alloc.
  bool fillGaps(bool waits, bool late);
  /// Whether a capture is under way into the heap's pool. What lies free there is complete, or the
  /// capture's own.
  bool captured() const;
  /// Whether, in the last attempt, the device would not order the streams.
  bool unordered() const { return unordered_; }
  /// Whether, in any attempt, a page was passed over because no gap had room for it.
  bool pageTooLarge() const { return page_too_large_; }

 private:
  enum class Which : std::uint8_t { kComplete, kAny };

  void giveBackSmall();
  void giveBackForGrowth();
  std::uint64_t roomLeft() const;
  bool gives(const Heap& source) const;
  bool hasAny(Heap& source) const;
  std::size_t movableInCapture() const;
  void takeOwn(std::size_t most);
  void takeFromOthers(Which which);
  bool orderAfter(Heap& source);
  void takeFrom(Heap& source, Which which, std::size_t most) CISTERN_REQUIRES(source.mutex());
  void grow(bool late);
  PhysicalPage* spareFor(std::uint32_t most_units);
  PhysicalPage* create(std::uint32_t units, bool late);

  Ground& ground_;
  Heap& heap_;
  const Request& request_;
  const PagesFrom from_;
  Reservation& reserved_;
  bool pressed_ = false;  ///< the device or the limit has refused: time is no matter now
  bool unordered_ = false;
  bool page_too_large_ = false;
};

}  // namespace cistern::pages
