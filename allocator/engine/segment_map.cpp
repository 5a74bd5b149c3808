#include "allocator/engine/segment_map.hpp"

#include <new>

#include <sys/mman.h>

#include "allocator/base/check.hpp"
#include "allocator/engine/heap.hpp"

namespace cistern {
namespace {

constexpr std::size_t kRootBytes = (std::size_t{1} << 26) * sizeof(std::uintptr_t);

}  // namespace

// The root is address space, not memory: only pages that hold a pointer are ever backed.
SegmentMap::SegmentMap() {
  void* root = mmap(nullptr, kRootBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (root == MAP_FAILED) throw std::bad_alloc();
  static_assert(kRootShift == 26 && sizeof(std::atomic<Root>) == sizeof(Root));
  root_ = static_cast<std::atomic<Root>*>(root);
}

SegmentMap::~SegmentMap() {
  for (Leaf* leaf : made_) delete leaf;
  munmap(root_, kRootBytes);
}

// Made with its leaf where there is none. Pre: no segment has all of those 2 GiB.
SegmentMap::Granule& SegmentMap::granule(std::uint64_t index) {
  const Root there = root(index).load(std::memory_order_relaxed);
  CISTERN_CHECK((there & kWhole) == 0);
  if (there != 0) return granule(there, index);
  made_.reserve(made_.size() + 1);
  auto* fresh = new Leaf;
  made_.push_back(fresh);
  root(index).store(reinterpret_cast<Root>(fresh), std::memory_order_release);
  leaves_.fetch_add(1, std::memory_order_relaxed);
  return granule(reinterpret_cast<Root>(fresh), index);
}

void SegmentMap::insert(HeapSegment& segment) {
  const std::uint64_t from = segment.device_base >> kGranuleShift;
  const std::uint64_t to = (segment.deviceEnd() - 1) >> kGranuleShift;
  CISTERN_CHECK(to >> (kRootShift + kLeafShift) == 0);
  const MutexLock lock(mutex_);
  for (std::uint64_t i = from; i <= to; ++i) (void)granule(i);  // all that may throw
  for (std::uint64_t i = from; i <= to; ++i) store(i, segment, &segment);
}

void SegmentMap::extend(HeapSegment& segment, AddressRange own, Address from, Address to) {
  constexpr Address kGranuleBytes = Address{1} << kGranuleShift;
  CISTERN_CHECK(((own.from | own.to | from | to) & (kGranuleBytes - 1)) == 0);
  CISTERN_CHECK(own.from <= from && to <= own.to);
  CISTERN_CHECK((own.to - 1) >> kGranuleShift >> (kRootShift + kLeafShift) == 0);
  const MutexLock lock(mutex_);
  const auto isWhole = [own](Address at) {
    const Address begin = at & ~(kLeafBytes - 1);
    return own.from <= begin && begin + kLeafBytes <= own.to;
  };
  for (Address at = from; at < to; at += kGranuleBytes) {
    if (!isWhole(at)) (void)granule(at >> kGranuleShift);  // all that may throw
  }
  const Root whole = reinterpret_cast<Root>(&segment) | kWhole;
  for (Address at = from; at < to; at += kGranuleBytes) {
    const std::uint64_t index = at >> kGranuleShift;
    if (isWhole(at)) {
      root(index).store(whole, std::memory_order_release);
    } else {
      granule(index).at_start.store(&segment, std::memory_order_release);
    }
  }
}

void SegmentMap::erase(HeapSegment& segment) noexcept {
  const std::uint64_t from = segment.device_base >> kGranuleShift;
  const std::uint64_t to = (segment.deviceEnd() - 1) >> kGranuleShift;
  const MutexLock lock(mutex_);
  for (std::uint64_t i = from; i <= to; ++i) store(i, segment, nullptr);
}

// Writes the part of a granule that belongs to `segment`: its record, or null.
void SegmentMap::store(std::uint64_t index, const HeapSegment& segment, HeapSegment* value) {
  Granule& g = granule(index);
  if (segment.device_base <= index << kGranuleShift) {
    CISTERN_CHECK(value == nullptr || g.at_start.load(std::memory_order_relaxed) == nullptr);
    g.at_start.store(value, std::memory_order_release);
  } else {
    CISTERN_CHECK(value == nullptr || g.within.load(std::memory_order_relaxed) == 0);
    const std::uint64_t start = grainInGranule(segment.device_base) << kRecordBits;
    g.within.store(value ? start | toAddress(value) : 0, std::memory_order_release);
  }
}

std::size_t SegmentMap::hostBytes() const noexcept {
  return leaves_.load(std::memory_order_relaxed) * (sizeof(Leaf) + 4096);
}

}  // namespace cistern
