// What the tests of single parts share: what stands below every part, on a simulated device, and
// nothing above. Memory is made up: a heap's segments are records, and no device knows them.
#pragma once

#include <deque>
#include <vector>

#include "allocator/engine/core/heap_table.hpp"
#include "allocator/engine/core/progress.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/support/interposed_device.hpp"

namespace cistern::test {

/// Streams and heaps of the default pool. At the end every heap's invariants are walked.
struct Parts {
  explicit Parts(sim::SimConfig config = simOf(kGiB)) : sim(std::move(config)) {}
  ~Parts() {
    for (Heap* heap : heaps.all()) audit(*heap);
    sim.audit();
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  static void audit(Heap& heap) {
    const MutexLock lock(heap.mutex());
    heap.audit();
  }

  // ---- Streams

  /// One that the allocator has met.
  Stream stream() {
    const Stream made = sim.createStream().orThrow();
    streams.registerStream(made);
    return made;
  }
  void work(Stream on, std::uint64_t nanoseconds) {
    sim.launch(on, {"work", {}, nanoseconds, nullptr}).orThrow();
  }
  /// Such a stream, with work that takes so long.
  Stream busyStream(std::uint64_t nanoseconds = kLongNs) {
    const Stream made = stream();
    work(made, nanoseconds);
    return made;
  }
  void beginCapture(Stream on) { sim.beginCapture(on, CaptureMode::kRelaxed).orThrow(); }
  void endCapture(Stream on) { sim.destroyGraph(sim.endCapture(on).orThrow()).orThrow(); }
  std::uint64_t calls(Call call) { return countOf(sim, call); }

  // ---- Heaps and their blocks

  Heap& heapOf(Stream of) { return heaps.findOrMake(pool, of); }
  HeapSegment& addSegment(Heap& heap, std::uint64_t bytes, SizeKind kind = SizeKind::kLarge) {
    HeapSegment& segment = records.emplace_back();
    segment.base = segment.device_base = next_base;
    segment.bytes = bytes;
    segment.kind = kind;
    next_base += bytes;
    const MutexLock lock(heap.mutex());
    heap.add(segment, Heap::From::kDevice);
    return segment;
  }
  /// A block out of the heap's free memory; more of that comes if need be.
  Block& allocate(Heap& heap, std::uint64_t bytes) {
    const Request request = rules.request(bytes, heap.stream(), &heap.pool());
    if (Block* const block = tryAllocate(heap, request)) return *block;
    addSegment(heap, rules.segmentFor(request), request.kind);
    return *tryAllocate(heap, request);
  }
  static Block* tryAllocate(Heap& heap, const Request& request) {
    const MutexLock lock(heap.mutex());
    return heap.allocate(request);
  }
  static void release(Block& block) {
    Heap& heap = *segmentOf(block).heap.load();
    const MutexLock lock(heap.mutex());
    heap.release(block, 0);
  }
  /// The epoch of the heap's next free.
  static std::uint64_t epochOf(Heap& heap) {
    const MutexLock lock(heap.mutex());
    return heap.completion().now();
  }
  static std::uint64_t completedOf(Heap& heap) {
    const MutexLock lock(heap.mutex());
    return heap.completion().completed();
  }

  sim::SimDevice sim;
  InterposedDevice device{sim};
  const SizeRules rules{Options::parse("backing:segments")};
  std::deque<HeapSegment> records;
  Address next_base = Address{1} << 40;
  Totals totals;
  SpareEvents events{device};
  Pool pool{true, rules, MemoryKind::kSegments};
  HeapTable heaps{pool, totals};
  KnownStreams streams{device, events, [this](Stream stream, bool forgotten) {
                         heaps.setForgotten(stream, forgotten);
                       }};
  StreamProgress progress{device, events, streams};
};

}  // namespace cistern::test
