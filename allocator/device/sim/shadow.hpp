// Shadow memory: for every byte of one physical allocation, the work that last wrote it and the
// work that has read it since. Keyed by place, not address, so that two views of a page are one.
// Under the simulated device's lock. Read next: race_detector.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "allocator/device/sim/queued_work.hpp"
#include "allocator/device/sim/vector_clock.hpp"
#include "cistern/types.hpp"

namespace cistern::sim {

/// The identity of a piece of work, for reports.
struct WorkTag {
  std::string name;
  Stream stream;
};

/// A piece of work's touch of memory. It reached byte `o` of the allocation by the address base +
/// o. So a Touch stays right when its range is split.
struct Touch {
  Epoch epoch;
  Address base = 0;
  std::shared_ptr<const WorkTag> work;
  friend bool operator==(const Touch& a, const Touch& b) {
    return a.epoch == b.epoch && a.base == b.base;
  }
};

/// An earlier access that the present one conflicts with and is not ordered after.
struct Conflict {
  Touch earlier;
  bool earlier_writes = false;
  std::uint64_t offset = 0;  ///< the first byte of the overlap
};

class Shadow {
 public:
  /// Enters an access to [begin, end) by `touch`, which happens after exactly what `before` covers.
  /// Appends to `conflicts`, once for each earlier piece of work. Pre: begin < end.
  void touch(std::uint64_t begin, std::uint64_t end, AccessKind kind, const Touch& touch,
             const VectorClock& before, std::vector<Conflict>& conflicts);

  std::size_t cells() const { return cells_.size(); }
  /// Cells are disjoint and not empty.
  void audit() const;

 private:
  struct Cell {
    std::uint64_t end = 0;
    std::optional<Touch> writer;
    std::vector<Touch> readers;  ///< since the writer; none covered by another of them
    bool sameTouches(const Cell& o) const { return writer == o.writer && readers == o.readers; }
  };
  using Cells = std::map<std::uint64_t, Cell>;

  void write(std::uint64_t begin, std::uint64_t end, const Touch& touch);
  void read(std::uint64_t begin, std::uint64_t end, const Touch& touch, const VectorClock& before);
  Cells::iterator firstOver(std::uint64_t begin);
  void splitAt(std::uint64_t offset);
  Cells::iterator mergeWithPrevious(Cells::iterator it);

  Cells cells_;  ///< by first byte; what no cell covers was never touched
};

}  // namespace cistern::sim
