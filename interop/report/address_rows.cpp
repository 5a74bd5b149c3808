#include "interop/report/address_rows.hpp"

#include <algorithm>

#include "interop/report/reserved.hpp"

namespace cistern::report {
namespace {

/// Invariant: begin < end.
struct Extent {
  std::uint64_t begin, end;
};

/// The memory of the device; else, where nobody recorded it, that of the blocks.
std::vector<Extent> extentsOf(const Study& study) {
  std::vector<Extent> extents;
  for (const recording::Event& event : study.recorded().events) {
    if (!takesMemory(event) || event.value == 0) continue;
    const std::uint64_t begin = study.recorded().placeOf(event).address;
    extents.push_back({begin, recording::endOf(begin, event.value)});
  }
  if (study.recorded().has_reserved) return extents;
  for (const Life& life : study.lives)
    if (life.bytes != 0)
      extents.push_back({life.address, recording::endOf(life.address, takenBytes(life.bytes))});
  return extents;
}

/// Without overlaps; neighbours with at most `gap` bytes between them become one.
std::vector<Extent> merged(const std::vector<Extent>& sorted, std::uint64_t gap) {
  std::vector<Extent> all;
  for (const Extent& extent : sorted) {
    const bool joins =
        !all.empty() && (extent.begin <= all.back().end || extent.begin - all.back().end <= gap);
    if (joins) {
      all.back().end = std::max(all.back().end, extent.end);
    } else {
      all.push_back(extent);
    }
  }
  return all;
}

/// So few that each can have two rows: the smallest gaps are closed.
std::vector<Extent> fewExtents(const Study& study, std::size_t most) {
  std::vector<Extent> sorted = extentsOf(study);
  std::sort(sorted.begin(), sorted.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  std::vector<Extent> all = merged(sorted, 0);
  for (std::uint64_t gap = 1 << 20; all.size() > most; gap *= 2) all = merged(all, gap);
  return all;
}

std::size_t rowsFor(const std::vector<Extent>& extents, std::uint64_t row_bytes) {
  std::size_t rows = 0;
  for (const Extent& extent : extents)
    rows += std::size_t((extent.end - extent.begin - 1) / row_bytes + 1);
  return rows;
}

std::uint64_t leastRowBytes(const std::vector<Extent>& extents, std::size_t most) {
  std::uint64_t too_few = 0, enough = 512;
  while (rowsFor(extents, enough) > most) {
    too_few = enough;
    enough *= 2;
  }
  while (too_few != 0 && enough - too_few > 512) {
    const std::uint64_t middle = (too_few + (enough - too_few) / 2) / 512 * 512;
    (rowsFor(extents, middle) > most ? too_few : enough) = middle;
  }
  return enough;
}

}  // namespace

AddressRows::AddressRows(const Study& study, std::size_t most) {
  const std::vector<Extent> extents = fewExtents(study, most / 2);
  row_bytes_ = leastRowBytes(extents, most);
  for (const Extent& extent : extents) {
    const std::size_t rows = rowsFor({extent}, row_bytes_);
    parts_.push_back({extent.begin, extent.end - extent.begin, count_, rows});
    count_ += rows;
  }
}

const AddressPart* AddressRows::partWith(std::uint64_t address) const {
  auto part = std::upper_bound(
      parts_.begin(), parts_.end(), address,
      [](std::uint64_t wanted, const AddressPart& p) { return wanted < p.address; });
  if (part == parts_.begin()) return nullptr;
  --part;
  return address < part->address + part->bytes ? &*part : nullptr;
}

}  // namespace cistern::report
