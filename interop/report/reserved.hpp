// The memory that the allocator has from the device: how events change it, and its ranges of
// addresses at one moment.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "interop/recording/recording_model.hpp"

namespace cistern::report {

/// A range of addresses with device memory behind it.
struct ReservedRange {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t pool = 0;
  std::uint32_t stream = 0;
  bool in_pages = false;  ///< it is mapped page by page; else a segment, one piece of the device's
};

/// The bytes by which an event changes what is reserved; 0 for most events.
std::int64_t reservedChange(const recording::Event& event);

/// All reserved ranges, kept up to date event by event.
/// Invariant: no two ranges overlap.
class ReservedMap {
 public:
  /// An event that is not about reserved memory changes nothing. A range that was never reserved
  /// may be given back: recordings can begin in the middle.
  void apply(const recording::Event& event);
  /// By address.
  std::vector<ReservedRange> ranges() const;
  std::uint64_t bytes() const { return bytes_; }

 private:
  void add(const recording::Event& event, bool in_pages);
  void remove(std::uint64_t begin, std::uint64_t end);

  std::map<std::uint64_t, ReservedRange> ranges_;  ///< by address
  std::uint64_t bytes_ = 0;
};

/// The ranges after the first `done` events.
ReservedMap reservedAfter(const recording::Recording& recording, std::uint64_t done);

}  // namespace cistern::report
