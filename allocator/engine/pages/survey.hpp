// Which of a heap's pages lie wholly free at this moment, and so could serve elsewhere: within
// their pool, or, but for those that a graph reaches, anywhere.
#pragma once

#include <optional>
#include <vector>

#include "allocator/engine/pages/page.hpp"

namespace cistern::pages {

enum class Whither : bool { kWithinPool, kAnywhere };

/// A picture of one heap, good until its lock is given up. Marks what it finds: a view was found
/// free  <=>  view.found.by == number(), and then view.found.in is the free block around it, and
/// view.last_use says when any part of the page was used last.
class Survey {
 public:
  /// What surveys need again and again: one at a time.
  struct Scratch {
    std::uint64_t surveys = 0;  ///< so many were made
    std::vector<View*> views;
  };

  /// Throws std::bad_alloc.
  Survey(Heap& heap, Scratch& scratch, Whither whither) CISTERN_REQUIRES(heap.mutex());

  std::uint64_t number() const { return number_; }
  /// The views of wholly free pages that may go there, small ones' and large ones'.
  const std::vector<View*>& freeViews() const { return free_; }
  /// Whether any page lies wholly free, also if a graph keeps it from going there.
  bool any() const { return any_; }
  bool found(const View& view) const { return view.found.by == number_; }

 private:
  void stampRecent(Heap& heap) CISTERN_REQUIRES(heap.mutex());
  void note(Heap& heap, Block& block) CISTERN_REQUIRES(heap.mutex());

  const std::uint64_t number_;
  const Whither whither_;
  bool any_ = false;
  std::vector<View*>& free_;
};

/// Answers which pages could serve elsewhere in their pool, one at a time. The survey is made when
/// it is asked first: where nothing stale lies in a heap's holes, nobody asks.
class Movables {
 public:
  Movables(Heap& heap, Survey::Scratch& scratch) : heap_(heap), scratch_(scratch) {}

  /// Whether the page lies wholly free where it is now, in this heap; or this heap has put it
  /// aside. Pre: the heap's lock is held, and was since this was made. Throws std::bad_alloc.
  bool has(const PhysicalPage& page) CISTERN_NO_TSA {
    if (page.parked) return page.counted_by == &heap_;
    if (page.current == nullptr) return false;
    if (!survey_) survey_.emplace(heap_, scratch_, Whither::kWithinPool);
    return survey_->found(*page.current);
  }

 private:
  Heap& heap_;
  Survey::Scratch& scratch_;
  std::optional<Survey> survey_;
};

}  // namespace cistern::pages
