#include "allocator/engine/ground/segment_map.hpp"

#include <cstdio>
#include <new>

#include <sys/mman.h>

#include "allocator/base/check.hpp"
#include "allocator/engine/ground/heap_segment.hpp"

namespace cistern {
namespace {

// The table that `word` names. Makes one if it names nothing. Pre: no segment has all that it
// covers.
template <class Made>
std::uintptr_t madeIn(std::atomic<std::uintptr_t>& word, std::vector<std::unique_ptr<Made>>& made,
                      std::atomic<std::size_t>& host_bytes) {
  const std::uintptr_t there = word.load(std::memory_order_relaxed);
  CISTERN_CHECK((there & 1) == 0);
  if (there != 0) return there;
  made.push_back(std::make_unique<Made>());
  host_bytes.fetch_add(sizeof(Made) + sizeof(void*), std::memory_order_relaxed);
  const auto fresh = reinterpret_cast<std::uintptr_t>(made.back().get());
  word.store(fresh, std::memory_order_release);
  return fresh;
}

}  // namespace

NoAddresses::NoAddresses(std::uint64_t bytes) noexcept {
  (void)std::snprintf(
      text_.data(), text_.size(),
      "cannot reserve %llu MiB of addresses for an allocator's map, which takes no memory: "
      "raise the limit on the process's addresses (ulimit -v), or make fewer allocators",
      static_cast<unsigned long long>(bytes / kMiB));
}

SegmentMap::SegmentMap()
    : root_(static_cast<std::atomic<Word>*>(mmap(nullptr, kRootBytes, PROT_READ | PROT_WRITE,
                                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                                                 0))) {
  static_assert(sizeof(std::atomic<Word>) == sizeof(Word));
  if (root_ == MAP_FAILED) throw NoAddresses(kRootBytes);
}

SegmentMap::~SegmentMap() { (void)munmap(root_, kRootBytes); }

std::atomic<SegmentMap::Word>& SegmentMap::branchWord(std::uint64_t index) {
  return wordIn(madeIn(root(index), branches_, host_bytes_), index);
}

SegmentMap::Word SegmentMap::leaf(std::uint64_t index) {
  return madeIn(branchWord(index), leaves_, host_bytes_);
}

// In the cell with that index. All of a cell that a range has is the range's.
bool SegmentMap::overlaps(const HeapSegment& segment, std::uint64_t index) const {
  Word there = root(index).load(std::memory_order_relaxed);
  if (there != 0 && !(there & kWhole)) there = wordIn(there, index).load(std::memory_order_relaxed);
  if (there == 0 || (there & kWhole)) return there != 0;
  const Cell& in = cellIn(there, index);
  const HeapSegment* const before = in.at_start.load(std::memory_order_relaxed);
  if (before && (isRange(*before) || before->deviceEnd() > segment.device_base)) return true;
  const std::uint64_t within = in.within.load(std::memory_order_relaxed);
  return within != 0 && recordOf(within)->device_base < segment.deviceEnd();
}

bool SegmentMap::overlaps(const HeapSegment& segment) const {
  const std::uint64_t last = (segment.deviceEnd() - 1) >> kCellShift;
  for (std::uint64_t i = segment.device_base >> kCellShift; i <= last; ++i) {
    if (overlaps(segment, i)) return true;
  }
  return false;
}

bool SegmentMap::insert(HeapSegment& segment) {
  const std::uint64_t to = (segment.deviceEnd() - 1) >> kCellShift;
  CISTERN_CHECK(to < kCells);
  const MutexLock lock(mutex_);
  if (overlaps(segment)) return false;
  for (std::uint64_t i = (segment.device_base >> kCellShift) & ~(kLeafCells - 1); i <= to;
       i += kLeafCells)
    (void)leaf(i);  // all that may throw
  store(segment, &segment);
  return true;
}

// If host memory runs out, the entries made by then say nothing wrong: all of the range is its own.
void SegmentMap::extend(HeapSegment& segment, AddressRange own, Address from, Address to) {
  constexpr Address kCellBytes = Address{1} << kCellShift;
  CISTERN_CHECK(((own.from | own.to | from | to) & (kCellBytes - 1)) == 0);
  CISTERN_CHECK(own.from <= from && to <= own.to && (own.to - 1) >> kAddressBits == 0);
  const MutexLock lock(mutex_);
  const auto isWhole = [own](Address at, Address bytes) {
    const Address begin = at & ~(bytes - 1);
    return own.from <= begin && begin + bytes <= own.to;
  };
  const Word whole = reinterpret_cast<Word>(&segment) | kWhole;
  for (Address at = from; at < to; at += kCellBytes) {
    const std::uint64_t index = at >> kCellShift;
    if (isWhole(at, kBranchBytes)) {
      root(index).store(whole, std::memory_order_release);
    } else if (isWhole(at, kLeafBytes)) {
      branchWord(index).store(whole, std::memory_order_release);
    } else {
      cellIn(leaf(index), index).at_start.store(&segment, std::memory_order_release);
    }
  }
}

void SegmentMap::erase(HeapSegment& segment) noexcept {
  const MutexLock lock(mutex_);
  store(segment, nullptr);
}

// Writes what belongs to `segment` of its cells: its record, or null.
void SegmentMap::store(const HeapSegment& segment, HeapSegment* value) {
  const std::uint64_t to = (segment.deviceEnd() - 1) >> kCellShift;
  Word in = 0;
  for (std::uint64_t i = segment.device_base >> kCellShift; i <= to; ++i) {
    if (in == 0 || i % kLeafCells == 0) in = leaf(i);
    Cell& g = cellIn(in, i);
    if (segment.device_base <= i << kCellShift) {
      CISTERN_CHECK(value == nullptr || g.at_start.load(std::memory_order_relaxed) == nullptr);
      g.at_start.store(value, std::memory_order_release);
    } else {
      CISTERN_CHECK(value == nullptr || g.within.load(std::memory_order_relaxed) == 0);
      const std::uint64_t start = granuleInCell(segment.device_base) << kRecordBits;
      g.within.store(value ? start | toAddress(value) : 0, std::memory_order_release);
    }
  }
}

}  // namespace cistern
