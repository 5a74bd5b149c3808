// Host memory serves what the device has no room for: whose memory is tried in which order, and
// when pages are made.
#include <algorithm>
#include <atomic>
#include <cstdio>

#include "allocator/base/bytes.hpp"
#include "allocator/engine/capture/live_capture.hpp"
#include "allocator/engine/exchange/exchange.hpp"
#include "allocator/engine/paths/slow_path.hpp"

namespace cistern::slow_path {
namespace {

Heap& heapBeside(Engine& engine, const Request& request) {
  Heap& heap = engine.heaps.findOrMake(*request.pool, request.stream, true);
  if (const std::shared_ptr<LiveCapture> capture = heap.pool().capture()) capture->learn(heap);
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
    if (Block* const block = liveCaptureOf(request).take(heap, request)) return block;
  }
  if (Block* const block = engine.pages.place(heap, request, PagesFrom::kNoNew)) return block;
  return takeComplete(engine, heap, request, Extent::kParts);
}

// Some of the block, or all, may have found room on the device.
std::uint64_t noted(Engine& engine, Heap& heap, const Block& block) {
  const MutexLock still(engine.pages.mutex());
  const MutexLock lock(heap.mutex());
  const std::uint64_t on_host = engine.pages.hostBytesIn(block);
  if (on_host == 0) return 0;
  engine.overflow_counts.note(on_host, engine.overflow.reserved(), engine.limit.reserved());
  return on_host;
}

// Once in a process. A simulated device says nothing: its host memory is not the host's.
void sayOnce(const Engine& engine, std::uint64_t on_host) {
  static constinit std::atomic<bool> said{false};
  if (engine.device.backend() == "sim" || said.exchange(true)) return;
  std::fprintf(stderr,
               "cistern: %s is full: %s of a request lie in the host's memory, which is slower "
               "(docs/overflow.md; said once)\n",
               engine.deviceName().c_str(), formatBytes(on_host).c_str());
}

// Pages that lie free may be of a size that serves nobody. A capture unmaps nothing.
Block* withNewPages(Engine& engine, Heap& heap, const Request& request) {
  const PagesFrom from = request.capture ? PagesFrom::kComplete : PagesFrom::kQueued;
  if (Block* const block = engine.pages.place(heap, request, from)) return block;
  if (request.capture != nullptr) return nullptr;
  {
    const MutexLock lock(engine.pressure_mutex);
    if (!giveBackFor(engine, request, Givers::kUnowned)) return nullptr;
  }
  return engine.pages.place(heap, request, from);
}

}  // namespace

Block* fromFreeHostMemory(Engine& engine, const Request& request) {
  if (!mayOverflow(engine, request) || engine.overflow.reserved() == 0) return nullptr;
  Heap& heap = heapBeside(engine, request);
  Block* const block = whatLiesFree(engine, heap, onHost(request));
  if (block != nullptr) (void)noted(engine, heap, *block);
  return block;
}

Block* fromNewHostMemory(Engine& engine, const Request& request) {
  if (!mayOverflow(engine, request)) return nullptr;
  const Request there = onHost(request);
  Heap& heap = heapBeside(engine, request);
  Block* block = whatLiesFree(engine, heap, there);
  if (block == nullptr) block = withNewPages(engine, heap, there);
  if (block == nullptr) return nullptr;
  if (const std::uint64_t on_host = noted(engine, heap, *block)) sayOnce(engine, on_host);
  return block;
}

// Free memory of one kind serves no request of the other, and that of a live pool no other pool's.
Block* fromAllGivenBack(Engine& engine, const Request& request) {
  if (!mayOverflow(engine, request) || request.capture != nullptr) return nullptr;
  std::uint64_t missing = request.rounded();
  for (const MemoryKind kind : {MemoryKind::kPages, MemoryKind::kOverflow})
    missing -= std::min(missing, engine.leftFor(kind));
  if (missing > freeBytes(engine.heaps.all())) return nullptr;
  emptyCacheUntidied(engine);
  return fromNewHostMemory(engine, request);
}

}  // namespace cistern::slow_path
