// Addresses that somebody holds: a graph, or an export. They are bound to the mapping of a page, or
// vacant: the pool sleeps, and no page is there before it wakes. The backing's lock guards both.
#pragma once

#include <cstdint>
#include <list>
#include <variant>

#include "allocator/base/check.hpp"
#include "allocator/engine/ground/holds.hpp"

namespace cistern::pages {

class HeldRange;
struct Mapping;
struct PageRange;

/// Addresses of a range that had a mapping when their pool fell asleep, and get one again.
struct VacantRange {
  PageRange* range = nullptr;
  std::uint32_t unit = 0;      ///< where in the range
  std::uint32_t end_unit = 0;  ///< == unit + the page's
  HoldCounts holds;
  std::uint32_t capture = 0;  ///< as Mapping's
  HeldRange* held = nullptr;  ///< what holders know it by; null if nobody holds it
  /// The device would not unmap it, or has mapped it for a wake that did not come to its end.
  bool mapped = false;
};

/// The part that a holder keeps of one range of addresses. It stays the same object while anybody
/// holds the range, whether a page is there or not.
class HeldRange {
 public:
  explicit HeldRange(Mapping& at) : memory_(&at) {}

  bool isBound() const { return std::holds_alternative<Mapping*>(memory_); }
  /// Pre: isBound().
  Mapping& mapping() const { return *std::get<Mapping*>(memory_); }
  /// Pre: !isBound().
  VacantRange& vacant() const { return *std::get<VacantRange*>(memory_); }
  void bind(Mapping& at) noexcept { memory_ = &at; }
  void vacate(VacantRange& at) noexcept { memory_ = &at; }

  std::list<HeldRange>::iterator self;  ///< in the table's list

 private:
  std::variant<Mapping*, VacantRange*> memory_;
};

}  // namespace cistern::pages
