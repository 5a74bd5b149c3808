// Free pages to choose from, by size; of one size the longest unused first, and of those that are
// as old what lies in the smallest free block.
#pragma once

#include <vector>

#include "allocator/engine/pages/page.hpp"

namespace cistern::pages {

class Donors {
 public:
  void clear() noexcept;
  /// Pre: a survey of now has found the view. Throws std::bad_alloc.
  void add(View& view);
  /// The largest that is no larger than `fitting` units; where there is none, the smallest that is
  /// no larger than `most`. Null when there is neither.
  View* take(std::uint32_t fitting, std::uint32_t most);
  bool empty() const { return count_ == 0; }
  std::size_t hostBytes() const;

 private:
  struct Donor {
    std::uint32_t epoch, grains;
    Address range;
    std::uint32_t unit;
    View* view;
    /// Whether others are taken first.
    bool operator<(const Donor& other) const;
  };
  /// Few are taken of many: hence a heap, as soon as the first is.
  struct OfOneSize {
    std::uint32_t units;
    bool heap = false;
    std::vector<Donor> donors;
  };
  /// Sizes up to so many units are where their number says, once there are any.
  static constexpr std::uint32_t kUsual = 16;
  OfOneSize& ofSize(std::uint32_t units) {
    return units <= kUsual && !sizes_.empty() ? sizes_[units - 1] : findSize(units);
  }
  OfOneSize& findSize(std::uint32_t units);

  std::vector<OfOneSize> sizes_;  ///< in order; sizes that there were before stay
  std::size_t count_ = 0;
};

}  // namespace cistern::pages
