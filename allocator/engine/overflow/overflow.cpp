#include "allocator/engine/overflow/overflow.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "allocator/base/bytes.hpp"
#include "allocator/engine/capture/recording.hpp"
#include "allocator/engine/cross_stream/loans.hpp"
#include "allocator/engine/giving_back/giving_back.hpp"

namespace cistern {
namespace {

Heap& heapBeside(Engine& engine, const Request& request) {
  Heap& heap = engine.heaps.findOrMakeOverflow(*request.pool, request.stream);
  if (const std::shared_ptr<Recording> recording = heap.pool().recording()) recording->learn(heap);
  return heap;
}

Request onHost(const Request& request) {
  Request there = request;
  there.overflow = true;
  return there;
}

// What a stream's own heap has comes first, then what the capture has freed, then others' memory.
Block* whatLiesFree(Engine& engine, Heap& heap, const Request& request) {
  {
    const MutexLock lock(heap.mutex());
    if (Block* const block = heap.allocate(request)) return block;
  }
  if (request.capture != nullptr) {
    if (Block* const block = recordingOf(request).take(heap, request)) return block;
  }
  if (Block* const block = engine.pages.place(heap, request, PagesFrom::kNoNew)) return block;
  return takeComplete(engine, heap, request, Extent::kParts);
}

Block* noted(Engine& engine, Heap& heap, Block* block) {
  if (block == nullptr) return nullptr;
  engine.overflow_counts.note(block->bytes(), engine.overflow.reserved(), engine.limit.reserved());
  const MutexLock lock(heap.mutex());
  heap.step_peak = std::max(heap.step_peak, heap.busyBytes());
  return block;
}

// Once in a process. A simulated device says nothing: its host memory is not the host's.
void sayOnce(const Engine& engine, const Request& request) {
  static constinit std::atomic<bool> said{false};
  if (engine.device.backend() == "sim" || said.exchange(true)) return;
  std::fprintf(stderr,
               "cistern: %s is full: %s of a request lie in the host's memory, which is slower "
               "(docs/overflow.md; said once)\n",
               engine.deviceName().c_str(), formatBytes(request.rounded()).c_str());
}

// Pages that lie free may be of a size that serves nobody. A capture unmaps nothing.
Block* withNewPages(Engine& engine, Heap& heap, const Request& request) {
  const PagesFrom from = request.capture ? PagesFrom::kComplete : PagesFrom::kQueued;
  if (Block* const block = engine.pages.place(heap, request, from)) return block;
  if (request.capture != nullptr || !giveBackFor(engine, request, Givers::kUnowned)) return nullptr;
  return engine.pages.place(heap, request, from);
}

}  // namespace

Block* fromFreeHostMemory(Engine& engine, const Request& request) {
  if (!mayOverflow(engine, request) || engine.overflow.reserved() == 0) return nullptr;
  Heap& heap = heapBeside(engine, request);
  return noted(engine, heap, whatLiesFree(engine, heap, onHost(request)));
}

Block* fromNewHostMemory(Engine& engine, const Request& request) {
  if (!mayOverflow(engine, request)) return nullptr;
  const Request there = onHost(request);
  Heap& heap = heapBeside(engine, request);
  Block* block = whatLiesFree(engine, heap, there);
  if (block == nullptr) block = withNewPages(engine, heap, there);
  if (block != nullptr) sayOnce(engine, request);
  return noted(engine, heap, block);
}

}  // namespace cistern
