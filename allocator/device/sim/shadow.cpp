#include "allocator/device/sim/shadow.hpp"

#include <algorithm>
#include <iterator>

#include "allocator/base/check.hpp"

namespace cistern::sim {
namespace {

void addOnce(std::vector<Conflict>& conflicts, Conflict conflict) {
  const bool known = std::any_of(conflicts.begin(), conflicts.end(), [&](const Conflict& c) {
    return c.earlier.epoch == conflict.earlier.epoch && c.earlier_writes == conflict.earlier_writes;
  });
  if (!known) conflicts.push_back(std::move(conflict));
}

}  // namespace

void Shadow::touch(std::uint64_t begin, std::uint64_t end, AccessKind kind, const Touch& touch,
                   const VectorClock& before, std::vector<Conflict>& conflicts) {
  // A piece of work may touch the same bytes twice; it does not conflict with itself.
  const auto unordered = [&](const Touch& earlier) {
    return !before.covers(earlier.epoch) && !(earlier.epoch == touch.epoch);
  };
  for (auto it = firstOver(begin); it != cells_.end() && it->first < end; ++it) {
    const std::uint64_t at = std::max(begin, it->first);
    const Cell& cell = it->second;
    if (cell.writer && unordered(*cell.writer)) addOnce(conflicts, {*cell.writer, true, at});
    if (kind == AccessKind::kRead) continue;
    for (const Touch& reader : cell.readers) {
      if (unordered(reader)) addOnce(conflicts, {reader, false, at});
    }
  }
  if (kind == AccessKind::kWrite) {
    write(begin, end, touch);
  } else {
    read(begin, end, touch, before);
  }
}

void Shadow::write(std::uint64_t begin, std::uint64_t end, const Touch& touch) {
  const auto exact = cells_.find(begin);
  if (exact != cells_.end() && exact->second.end == end) {  // the same range again: most often so
    exact->second.writer = touch;
    exact->second.readers.clear();
    return;
  }
  splitAt(begin);
  splitAt(end);
  cells_.erase(cells_.lower_bound(begin), cells_.lower_bound(end));
  cells_.emplace(begin, Cell{end, touch, {}});
}

void Shadow::read(std::uint64_t begin, std::uint64_t end, const Touch& touch,
                  const VectorClock& before) {
  splitAt(begin);
  splitAt(end);
  auto it = cells_.lower_bound(begin);
  for (std::uint64_t at = begin; at < end;) {
    if (it == cells_.end() || it->first > at) {  // a gap: never touched before
      const std::uint64_t gap_end = it == cells_.end() ? end : std::min(end, it->first);
      it = cells_.emplace_hint(it, at, Cell{gap_end, std::nullopt, {}});
    }
    Cell& cell = it->second;
    at = cell.end;
    // A reader that happens before this one adds nothing to it. The comparison by epoch alone also
    // drops an earlier touch by the same work.
    std::erase_if(cell.readers, [&](const Touch& reader) {
      return before.covers(reader.epoch) || reader.epoch == touch.epoch;
    });
    cell.readers.push_back(touch);
    it = std::next(mergeWithPrevious(it));
  }
}

Shadow::Cells::iterator Shadow::firstOver(std::uint64_t begin) {
  auto it = cells_.upper_bound(begin);
  if (it != cells_.begin() && std::prev(it)->second.end > begin) --it;
  return it;
}

void Shadow::splitAt(std::uint64_t offset) {
  auto it = cells_.lower_bound(offset);
  if (it == cells_.begin()) return;
  --it;
  if (it->second.end <= offset) return;
  Cell upper = it->second;
  it->second.end = offset;
  cells_.emplace(offset, std::move(upper));
}

Shadow::Cells::iterator Shadow::mergeWithPrevious(Cells::iterator it) {
  if (it == cells_.begin()) return it;
  const auto before = std::prev(it);
  if (before->second.end != it->first || !before->second.sameTouches(it->second)) return it;
  before->second.end = it->second.end;
  cells_.erase(it);
  return before;
}

void Shadow::audit() const {
  std::uint64_t end = 0;
  for (const auto& [begin, cell] : cells_) {
    CISTERN_CHECK(begin >= end && cell.end > begin);
    CISTERN_CHECK(cell.writer || !cell.readers.empty());
    end = cell.end;
  }
}

}  // namespace cistern::sim
