// What the tests of scans and windows share: one heap that is backed by pages which no device made.
#pragma once

#include "allocator/engine/pages/window.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/engine/pages/table_support.hpp"

namespace cistern::test {

struct OneHeapOfPages {
  using Mapping = pages::Mapping;
  using PageRange = pages::PageRange;
  static constexpr SizeKind kLarge = SizeKind::kLarge;

  ~OneHeapOfPages() {
    table.audit();
    const MutexLock lock(heap.mutex());
    heap.audit();
  }

  /// A range that the heap may place blocks of that kind in, with no memory yet.
  PageRange& range(std::uint32_t units, SizeKind kind = kLarge) {
    PageRange& made = table.addRange();
    made.base = made.device_base = next_base;
    made.reserved_bytes = units * pages::kUnit;
    made.kind = kind;
    made.home = &heap;
    made.heap = &heap;
    made.slots.resize(units);
    if (kind == kLarge) newest_large = &made;
    next_base += units * pages::kUnit;
    const MutexLock lock(heap.mutex());
    heap.layout(kind).extend(made, units * pages::kUnitGranules);
    return made;
  }
  /// A page that lies free there, last used in `epoch`.
  Mapping& page(PageRange& in, std::uint32_t unit, std::uint32_t units = 1,
                std::uint32_t epoch = 0) {
    pages::PhysicalPage& made = addPage(table, ++handle, units);
    made.counted_by = &heap;
    Mapping& mapping = stale(made, in, unit);
    table.makeCurrent(mapping);
    const MutexLock lock(heap.mutex());
    Block* const hole = in.covering(mapping.place());
    heap.layout(in.kind).prepareHoles(1);
    heap.fill(in.kind, *hole, mapping.place(), mapping.placeEnd(), epoch);
    heap.layout(in.kind).countBacking(mapping.bytes(), +1, true);
    return mapping;
  }
  /// Where the page was before it moved.
  Mapping& stale(pages::PhysicalPage& of, PageRange& in, std::uint32_t unit) {
    Mapping& mapping = table.addMapping(of, in, unit);
    mapping.accessible = 1;
    return mapping;
  }

  Request request(std::uint64_t bytes) { return rules.request(bytes, heap.stream(), &pool); }
  /// A block at that offset of the range, in free memory.
  Block& allocateAt(PageRange& in, std::uint64_t offset, std::uint64_t bytes) {
    const MutexLock lock(heap.mutex());
    Request asked = request(bytes);
    asked.kind = in.kind;
    return *heap.allocateFrom(*in.covering(in.base + offset), asked, in.base + offset);
  }
  void release(Block& block) {
    const MutexLock lock(heap.mutex());
    heap.release(block, 0);
  }
  void endEpoch() {
    const MutexLock lock(heap.mutex());
    (void)heap.endedEpoch();
  }
  std::optional<pages::Window> windowFor(std::uint64_t bytes, bool fresh_only = false) {
    const MutexLock lock(heap.mutex());
    const pages::FreePageScan scan(heap, scans);
    return pages::bestWindow(heap, request(bytes), {&scan}, windows,
                             fresh_only ? newest_large : nullptr);
  }
  std::optional<pages::Window> windowAt(std::uint64_t bytes, Address at) {
    const MutexLock lock(heap.mutex());
    const pages::FreePageScan scan(heap, scans);
    return pages::windowAt(heap, request(bytes), {&scan}, windows, at);
  }

  SizeRules rules{Options{}};
  Pool pool{true, rules, MemoryKind::kPages};
  Totals totals;
  Heap heap{pool, Stream{1}, pool.heapOptions(), totals};
  pages::MappingTable table;
  Address next_base = Address{1} << 40;
  PageRange* newest_large = nullptr;
  std::uint64_t handle = 0, scans = 0, windows = 0;
};

}  // namespace cistern::test
