// Notes that the pages backing keeps of each heap. Guarded by the backing's lock.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/engine/pages/cost.hpp"
#include "allocator/engine/pages/page.hpp"

namespace cistern::pages {

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
  std::uint64_t missed_at = 0;    ///< how many requests its rounds had noted at the last miss
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
  /// Pre: something was noted of it.
  const HeapNotes& of(const Heap& heap) const { return *all_[heap.number()]; }
  std::size_t hostBytes() const { return all_.size() * (sizeof(HeapNotes) + sizeof(void*)); }

 private:
  const double share_;
  std::vector<std::unique_ptr<HeapNotes>> all_;
};

}  // namespace cistern::pages
