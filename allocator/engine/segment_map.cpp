#include "allocator/engine/segment_map.hpp"

#include <new>

#include <sys/mman.h>

#include "allocator/base/check.hpp"
#include "allocator/engine/heap.hpp"

namespace cistern {
namespace {

constexpr std::size_t kRootBytes = (std::size_t{1} << 26) * sizeof(void*);

}  // namespace

// The root is address space, not memory: only pages that hold a pointer are ever backed.
SegmentMap::SegmentMap() {
  void* root = mmap(nullptr, kRootBytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (root == MAP_FAILED) throw std::bad_alloc();
  static_assert(kRootShift == 26 && sizeof(std::atomic<Leaf*>) == sizeof(void*));
  root_ = static_cast<std::atomic<Leaf*>*>(root);
}

SegmentMap::~SegmentMap() {
  for (Leaf* leaf : made_) delete leaf;
  munmap(root_, kRootBytes);
}

SegmentMap::Leaf& SegmentMap::leaf(std::uint64_t index) {
  std::atomic<Leaf*>& slot = root_[index >> kLeafShift];
  if (Leaf* there = slot.load(std::memory_order_relaxed)) return *there;
  made_.reserve(made_.size() + 1);
  auto* fresh = new Leaf;
  made_.push_back(fresh);
  slot.store(fresh, std::memory_order_release);
  leaves_.fetch_add(1, std::memory_order_relaxed);
  return *fresh;
}

void SegmentMap::insert(HeapSegment& segment) {
  const std::uint64_t from = segment.device_base >> kGranuleShift;
  const std::uint64_t to = (segment.deviceEnd() - 1) >> kGranuleShift;
  CISTERN_CHECK(to >> (kRootShift + kLeafShift) == 0);
  const MutexLock lock(mutex_);
  for (std::uint64_t i = from; i <= to; ++i) (void)leaf(i);  // all that may throw
  for (std::uint64_t i = from; i <= to; ++i) store(i, segment, &segment);
}

void SegmentMap::extend(HeapSegment& segment, Address from, Address to) {
  CISTERN_CHECK(((from | to) & ((Address{1} << kGranuleShift) - 1)) == 0);
  CISTERN_CHECK((to - 1) >> kGranuleShift >> (kRootShift + kLeafShift) == 0);
  const MutexLock lock(mutex_);
  for (Address at = from; at < to; at += Address{1} << kGranuleShift) {
    (void)leaf(at >> kGranuleShift);  // all that may throw
  }
  for (Address at = from; at < to; at += Address{1} << kGranuleShift) {
    granule(at >> kGranuleShift)->at_start.store(&segment, std::memory_order_release);
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
  Granule& g = *granule(index);
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
