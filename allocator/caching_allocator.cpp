#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/current_device.hpp"
#include "allocator/base/process.hpp"
#include "allocator/engine/backing/imports.hpp"
#include "allocator/engine/errors/engine_errors.hpp"
#include "allocator/engine/exchange/exchange.hpp"
#include "allocator/engine/paths/slow_path.hpp"
#include "cistern/allocator.hpp"

namespace cistern {
void* CachingAllocator::allocate(std::size_t bytes) {
  return allocate(bytes, detail::current_streams[ordinalIndex(device().ordinal())]);
}

void* CachingAllocator::allocate(std::size_t bytes, Stream stream, std::size_t alignment) {
  return slow_path::allocateAligned(*engine_, bytes, stream, nullptr, alignment);
}

void CachingAllocator::emptyCache() {
  if (!engine_->made.isHere()) return;
  const DeliverAtEnd deliver(engine_->memory_hooks);
  cistern::emptyCache(*engine_);
  engine_->memory_hooks.deliver();
  (void)engine_->hooks.tidy(Tidying::kEmptied);
}

void CachingAllocator::recordStream(void* pointer, Stream stream) {
  if (pointer == nullptr) return;
  Engine& engine = engine_->here("recordStream");
  if (engine.heaps.find(stream) == nullptr) engine.meet(stream);
  if (!recordUse(engine, toAddress(pointer), stream))
    reportMisuse(engine, "recordStream", toAddress(pointer));
}

void CachingAllocator::registerStream(Stream stream) {
  engine_->here("registerStream").meet(stream);
}

// At exit, and in a child of fork, nobody is left who would ask the stream.
void CachingAllocator::forgetStream(Stream stream) {
  if (driverMayBeCalled() && engine_->made.isHere()) engine_->streams.forgetStream(stream);
}

MempoolId_t CachingAllocator::poolFor(Stream stream) {
  const Route route = engine_->here("poolFor").pools.route(stream);
  return route.pool ? route.pool->id() : MempoolId_t{};
}

void CachingAllocator::setMemoryFraction(double fraction) {
  if (!(fraction > 0 && fraction <= 1)) {
    throw InvalidArgument(
        fmt::format("memory fraction {} is outside the range: more than 0, at most 1", fraction));
  }
  const std::uint64_t total = engine_->device_total;
  setLimit(std::min(total, std::uint64_t(std::llround(fraction * double(total)))));
}

void CachingAllocator::setLimit(std::uint64_t bytes) { engine_->limit.set(bytes); }
std::uint64_t CachingAllocator::limit() const { return engine_->limit.limit(); }

// ---- Hooks -------------------------------------------------------------------------------------

HookId CachingAllocator::attachPoolReleasedObserver(std::function<void(MempoolId_t)> observer) {
  return engine_->here("attachPoolReleasedObserver").hooks.pool_released.add(std::move(observer));
}
HookId CachingAllocator::registerReclaimCallback(
    std::function<bool(const MemoryShortage&)> callback) {
  return engine_->here("registerReclaimCallback").hooks.reclaim.add(std::move(callback));
}
HookId CachingAllocator::registerReclaimCallback(std::function<bool()> callback) {
  std::function<bool(const MemoryShortage&)> told;
  if (callback) told = [plain = std::move(callback)](const MemoryShortage&) { return plain(); };
  return registerReclaimCallback(std::move(told));  // which refuses an empty one
}
HookId CachingAllocator::attachOutOfMemoryObserver(
    std::function<void(const OutOfMemoryReport&)> observer) {
  return engine_->here("attachOutOfMemoryObserver").hooks.out_of_memory.add(std::move(observer));
}
HookId CachingAllocator::attachMemoryHook(MemoryHook hook) {
  Engine& engine = engine_->here("attachMemoryHook");
  return engine.memory_hooks.attach(std::move(hook), [&engine] {
    engine.pages.tellPresent();
    for (Heap* heap : engine.heaps.all()) engine.segments.tellPresent(*heap);
    engine.imports->tellPresent();
  });
}
void CachingAllocator::detach(HookId hook) {
  Engine& engine = engine_->here("detach");
  Hooks& hooks = engine.hooks;
  if (engine.memory_hooks.detach(hook) || hooks.reclaim.remove(hook) ||
      hooks.out_of_memory.remove(hook) || hooks.pool_released.remove(hook) ||
      hooks.sleep.remove(hook))
    return;
  throw InvalidArgument(fmt::format(
      "detach: this allocator has no callback or observer with the name {}", hook.number));
}
void CachingAllocator::setMisuseHook(MisuseHook hook) {
  engine_->here("setMisuseHook").hooks.misuse.set(std::move(hook));
}

// ---- What there is -----------------------------------------------------------------------------

void CachingAllocator::resetPeakStats() { engine_->here("resetPeakStats").totals.resetPeaks(); }
void CachingAllocator::resetAccumulatedStats() {
  engine_->here("resetAccumulatedStats").totals.resetAccumulated();
}
void CachingAllocator::recordMemoryEvents(bool on) {
  engine_->here("recordMemoryEvents").log.set(on);
}
// Free blocks that threads' caches keep count as in use there.
std::uint64_t CachingAllocator::takePeak() {
  Engine& engine = engine_->here("takePeak");
  const std::uint64_t peak = engine.totals.takePeak();
  std::uint64_t elsewhere = 0;
  for (Heap* heap : engine.heaps.all()) {
    if (heap->memory() != MemoryKind::kHostPages && !heap->pool().asleep) continue;
    const MutexLock lock(heap->mutex());
    elsewhere += heap->busyBytes();
  }
  return peak - std::min(peak, elsewhere);
}
std::vector<MemoryEvent> CachingAllocator::takeMemoryEvents() {
  return engine_->here("takeMemoryEvents").log.take();
}
std::uint64_t CachingAllocator::misses() const { return engine_->now(); }
Result<MemoryInfo> CachingAllocator::getMemoryInfo() {
  return engine_->here("getMemoryInfo").device.memoryInfo();
}
void CachingAllocator::enablePeerAccess(int ordinal) {
  engine_->here("enablePeerAccess").device.admitPeer(ordinal).orThrow();
}

bool CachingAllocator::owns(const void* pointer) const noexcept {
  const auto [segment, heap] = engine_->locate(toAddress(pointer));
  if (heap == nullptr || !engine_->made.isHere()) return heap != nullptr;
  const MutexLock lock(heap->mutex());
  return segment->covers(toAddress(pointer), *heap);
}
std::size_t CachingAllocator::blockSize(void* pointer) const {
  return blockAt(engine_->here("blockSize"), "blockSize", toAddress(pointer)).bytes();
}
void CachingAllocator::setOverflow(std::uint64_t host_bytes) {
  Engine& engine = engine_->here("setOverflow");
  if (host_bytes != 0) {
    if (!engine.default_pool.onPages())
      throw InvalidArgument("setOverflow: memory comes in segments, and overflow needs pages");
    if (!engine.device.virtualMemory().host_pages) {
      throw InvalidArgument(
          fmt::format("setOverflow: {} has no pages of host memory", engine.deviceName()));
    }
    if (host_bytes < kPageUnit) {
      throw InvalidArgument(fmt::format("setOverflow: {} are less than a page of {}",
                                        formatBytes(host_bytes), formatBytes(kPageUnit)));
    }
    const std::uint64_t left = engine.device.hostPageBytesLeft();
    const std::uint64_t held = engine.overflow.reserved();
    if (host_bytes > held && host_bytes - held > left) {
      throw InvalidArgument(fmt::format("setOverflow: {} are more than the {} that the host admits",
                                        formatBytes(host_bytes), formatBytes(held + left)));
    }
  }
  engine.overflow.set(host_bytes);
}
Location CachingAllocator::locationOf(const void* pointer) const {
  Engine& engine = engine_->here("locationOf");
  return engine.locationOf(blockAt(engine, "locationOf", toAddress(pointer)));
}
std::uint64_t CachingAllocator::hostBytesIn(const void* pointer) const {
  Engine& engine = engine_->here("hostBytesIn");
  const Block& block = blockAt(engine, "hostBytesIn", toAddress(pointer));
  if (!heapOf(block).onPages()) return 0;
  const MutexLock lock(engine.pages.mutex());
  return engine.pages.hostBytesIn(block);
}
BaseAllocation CachingAllocator::getBaseAllocation(void* pointer) const {
  const Block& block =
      blockAt(engine_->here("getBaseAllocation"), "getBaseAllocation", toAddress(pointer));
  const MutexLock lock(heapOf(block).mutex());  // a range grows under it
  return {toPointer(segmentOf(block).device_base), segmentOf(block).bytes};
}

const Options& CachingAllocator::options() const { return engine_->options; }
Device& CachingAllocator::device() { return engine_->device; }
void CachingAllocator::audit() const { cistern::audit(engine_->here("audit")); }

}  // namespace cistern
