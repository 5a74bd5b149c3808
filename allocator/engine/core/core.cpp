#include "allocator/engine/core/core.hpp"

#include <fmt/format.h>

#include "allocator/device/per_thread_stream.hpp"

namespace cistern {

Core::Core(Device& on, const Options& how, std::uint64_t total)
    : device(on),
      options(how),
      rules(options),
      segment_rules(options, SizeRules::Place::kSegments),
      whole_rules(options, SizeRules::Place::kOwnSegments),
      device_total(total),
      totals(total),
      events(device),
      default_pool(true, rules,
                   options.backing == Backing::kPages ? MemoryKind::kPages : MemoryKind::kSegments),
      heaps(default_pool, totals),
      streams(device, events,
              [this](Stream stream, bool forgotten) { heaps.setForgotten(stream, forgotten); }),
      progress(device, events, streams) {
  host_pages.set(UINT64_MAX);
}

std::string Core::deviceName() const {
  return fmt::format("{} device {} ({})", device.backend(), device.ordinal(), device.name());
}

void Core::meet(Stream stream) {
  requireOneStream(device, stream);  // before it is asked anything
  const Result<CaptureInfo> info = device.captureInfo(stream);
  if (info.ok() || info.error().kind != ErrorKind::kInvalidHandle)
    return streams.registerStream(stream);
  throw InvalidArgument(fmt::format("stream {:#x} is not a live stream of {} device {} ({})",
                                    stream.raw, device.backend(), device.ordinal(),
                                    info.error().name));
}

// ---- All pools ----------------------------------------------------------------------------------

// Host memory comes in pages alone.
MemoryKind PoolTable::memoryWith(const PoolTraits& traits) const {
  if (traits.location == Location::kHost) return MemoryKind::kHostPages;
  return traits.needsSegments() ? MemoryKind::kSegments : core_.default_pool.memory();
}

Pool& PoolTable::open(MempoolId_t id, const PoolTraits& traits) {
  const MutexLock lock(mutex_);
  if (spare_.empty()) {
    if (spare_.capacity() <= pools_.size()) spare_.reserve(2 * pools_.size() + 1);
    spare_.push_back(&pools_.emplace_back(false, core_.rules, core_.default_pool.memory()));
  }
  Pool& pool = *spare_.back();
  const SizeRules& rules = traits.no_split ? core_.whole_rules
                           : traits.source ? core_.segment_rules
                                           : core_.rules;
  pool.open(id, traits, rules, memoryWith(traits));
  spare_.pop_back();
  return pool;
}

// No stream is asked: by the time that a pool's last user lets go, its streams may be gone.
void PoolTable::drain(Pool& pool) {
  pool.forEachHeap([this](Heap& heap) { core_.progress.refreshByEvent(heap); });
  setLends(pool, false);
  pool.drain();
}

void PoolTable::setLends(Pool& pool, bool lends) noexcept {
  if (pool.lends.exchange(lends) != lends) lenders_ += lends ? 1 : -1;
}

// All heaps leave the pool, or none. A heap stays while a thread asks about it, or while the device
// takes its last segment back.
std::optional<PoolTraits> PoolTable::close(Pool& pool) noexcept {
  bool empty = !pool.visited() && !pool.asleep;
  pool.forEachHeap([&](Heap& heap) { empty = empty && core_.progress.holdsNothing(heap); });
  empty = empty && !pool.visited();
  while (Heap* heap = empty ? pool.lastHeap() : nullptr) empty = core_.heaps.park(*heap);
  if (!empty) return std::nullopt;
  std::optional<PoolTraits> traits(pool.close());
  const MutexLock lock(mutex_);
  spare_.push_back(&pool);
  return traits;
}

// Pools that are opened at this moment may still be in pages: their first miss comes here, too.
void PoolTable::leavePages() {
  std::vector<std::shared_ptr<SegmentSource>> gone;
  const MutexLock lock(mutex_);
  std::vector<Pool*> pools{&core_.default_pool};
  gone.reserve(pools_.size());
  for (Pool& pool : pools_) {
    pools.push_back(&pool);
    gone.push_back(pool.leaveHandles());
  }
  core_.heaps.leavePages(pools, core_.segment_rules);
}

// ---- The router --------------------------------------------------------------------------------

void PoolTable::setRouter(Router* router) {
  router_.store(router, std::memory_order_release);
  caches_.setRouted(router != nullptr);
}

}  // namespace cistern
