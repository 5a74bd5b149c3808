// What a PyTorch allocator had reserved before its record began, and in which pool. The snapshot
// has the segments at its end alone. So the record's events are undone from its end to its
// beginning. Then they are done again, while the record is replayed.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "interop/trace/torch_snapshot.hpp"

namespace cistern::recording {

/// Reserved addresses from begin to end, of one segment or of pages in one.
struct Reserved {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t stream = 0;
  std::uint32_t pool = 0;
  bool expandable = false;
};

class ReservedBefore {
 public:
  explicit ReservedBefore(const trace::DeviceHistory& history);

  /// What was reserved when the record began, by address.
  const std::vector<Reserved>& atStart() const { return at_start_; }

  /// Does a segment's event, entry number `index` of the history. Returns the pool of its memory; 0
  /// also where nothing tells it. Pre: events come in order.
  std::uint32_t take(const trace::SnapshotEntry& entry, std::size_t index);

  /// The pool of the memory that is reserved at an address now; 0 also where nothing tells it.
  std::uint32_t poolAt(std::uint64_t address) const;

 private:
  void add(const Reserved& range);
  void remove(std::uint64_t begin, std::uint64_t end);
  const Reserved* rangeAt(std::uint64_t address) const;

  std::map<std::uint64_t, Reserved> ranges_;  // by begin; they do not overlap
  std::vector<Reserved> at_start_;
  std::unordered_map<std::uint64_t, std::uint32_t> pools_;  // by entry: of what it reserves; not 0
  bool of_several_pools_ = false;
};

}  // namespace cistern::recording
