// The memory that a PyTorch allocator had reserved before its record began, and in which pool. The
// snapshot has the segments at its end alone. So the record's events are undone from its end to its
// beginning. Then they are done again, while the record is replayed.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "interop/recording/backed_addresses.hpp"
#include "interop/trace/torch_snapshot.hpp"

namespace cistern::recording {

class ReservedBefore {
 public:
  explicit ReservedBefore(const trace::DeviceHistory& history);

  /// The memory that was reserved when the record began, by address.
  const std::vector<Reserved>& atStart() const { return at_start_; }

  /// Does a segment's event, entry number `index` of the history. Returns the pool of its memory; 0
  /// also where nothing tells it. Pre: events come in order.
  std::uint32_t take(const trace::SnapshotEntry& entry, std::size_t index);

  /// The pool of the memory that is reserved at an address now; 0 also where nothing tells it.
  std::uint32_t poolAt(std::uint64_t address) const;

 private:
  ReservedRanges ranges_;
  std::vector<Reserved> at_start_;
  std::unordered_map<std::uint64_t, std::uint32_t> pools_;  // by entry: of what it reserves; not 0
  bool of_several_pools_ = false;
};

}  // namespace cistern::recording
