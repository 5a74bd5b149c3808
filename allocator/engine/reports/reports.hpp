// What is said of a pointer, of a wrong free, and of a request that no memory was found for. It
// owns the counts of the last two; the rest it looks at. Takes heaps' locks, one at a time, and
// calls hooks of the program with none held. Thread-safe.
#pragma once

#include <atomic>
#include <string>

#include "allocator/engine/backing/limit.hpp"
#include "allocator/engine/backing/segment_map.hpp"
#include "allocator/engine/heap/heap_table.hpp"
#include "allocator/engine/reports/hooks.hpp"
#include "cistern/device.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

/// The segment that covers an address, and the heap that has it; null for none.
struct Located {
  HeapSegment* segment = nullptr;
  Heap* heap = nullptr;
};
inline Located locate(const SegmentMap& segments, Address address) noexcept {
  HeapSegment* const segment = segments.find(address);
  if (segment == nullptr) return {};
  return {segment, segment->heap.load(std::memory_order_acquire)};
}

class Reports {
 public:
  Reports(Device& device, const SegmentMap& segments, const HeapTable& heaps, const Limit& limit,
          Hooks& hooks)
      : device_(device), segments_(segments), heaps_(heaps), limit_(limit), hooks_(hooks) {}

  struct Inspected {
    std::size_t bytes = 0;
    BaseAllocation around;
  };
  /// Of a block that the program has. Throws InvalidArgument for any other pointer, which names it.
  Inspected inspect(const char* verb, Address address) const;
  /// Whether the address lies in memory of this allocator's.
  bool covers(Address address) const;
  /// Tells the misuse hook of a pointer that is no block's that the program has.
  void misuse(const char* verb, Address address) const noexcept;
  /// Tells the observers, and throws OutOfMemory. `segment`: the least that would have to be had of
  /// the device. `device_error`: what it said.
  [[noreturn]] void outOfMemory(const Request& request, std::uint64_t segment,
                                std::uint64_t device_total, std::string device_error);

  std::uint64_t misuses() const { return misuses_.load(std::memory_order_relaxed); }
  std::uint64_t outOfMemories() const { return out_of_memories_.load(std::memory_order_relaxed); }

 private:
  Misuse describe(const char* verb, Address address) const;
  OutOfMemoryReport describe(const Request& request, std::uint64_t segment) const;

  Device& device_;
  const SegmentMap& segments_;
  const HeapTable& heaps_;
  const Limit& limit_;
  Hooks& hooks_;
  mutable std::atomic<std::uint64_t> misuses_{0};
  std::atomic<std::uint64_t> out_of_memories_{0};
};

}  // namespace cistern
