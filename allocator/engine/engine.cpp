#include "allocator/engine/engine.hpp"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "allocator/base/check.hpp"
#include "allocator/base/process.hpp"
#include "allocator/engine/backing/imports.hpp"
#include "allocator/engine/core/core.hpp"

namespace cistern {
namespace {

/// All stacks of caches together may keep one part in kCachesPart of the device. A large block has
/// at most kLargeCache times `thread_cache`. Caches keep none if one could have more than that
/// part.
constexpr std::uint64_t kCachesPart = 64, kLargeCache = 4;

// If sizes are rounded in other ways, a block's size does not say which requests it is for.
CacheTable::Limits cacheLimits(const Options& options, const SizeRules& rules,
                               std::uint64_t total) {
  const std::uint64_t most = options.thread_cache;
  if (most == 0 || !rules.plain() || !BiasedLock::available()) return {};
  const std::uint64_t all = total / kCachesPart;
  const std::uint64_t last = std::min(most * kLargeCache, CacheSizes::kMostBytes);
  return {most, last <= all ? last : 0, all};
}

}  // namespace

Engine::Engine(Device& on, const Options& how, std::uint64_t total, PutBack put_back)
    : Core(on, how, total),
      segments(*this),
      pages(*this),
      caches(cacheLimits(options, rules, total), tick, totals),
      pending(device, events, streams,
              [this, put = std::move(put_back)](const PendingFrees::Pending& ready) {
                put(*this, ready);
              }),
      pools(*this, caches),
      imports(std::make_shared<Imports>(device, shared_memory_hooks)) {
  memory_hooks.countIn(in_hand);
}

// If the host is short of memory, the caches stay as they are.
void Engine::emptyCaches() noexcept try {
  withAllHeaps(*this, [](const std::vector<Heap*>&) {});
} catch (const std::bad_alloc&) {
}

Engine::~Engine() {
  const bool driver = driverMayBeCalled();
  imports->retry();
  pages.stop();
  emptyCaches();
  for (Heap* heap : heaps.all()) {
    {
      const MutexLock lock(heap->mutex());
      forEachBlock(*heap, [](Block& block) {
        if (block.state() == BlockState::kAllocated && !ownership::isOwned(ownership::load(block)))
          delete static_cast<StreamUses*>(block.use.uses);
      });
    }
    if (driver) segments.leave(*heap);
  }
  pages.shutDown(driver);
}

// ---- Memory of either backing -------------------------------------------------------------------

void Engine::addRangesOf(const HeldMemory& held, std::vector<AddressRange>& ranges) const {
  const MutexLock lock(pages.mutex());
  for (const pages::Mapping* at : held.mappings) {
    if (!at->page->asleep)
      ranges.push_back({at->deviceAddress(), at->deviceAddress() + at->bytes()});
  }
}

// ---- The invariants ----------------------------------------------------------------------------

void audit(Engine& engine) {
  const MutexLock lock(engine.pages.mutex());
  std::uint64_t reserved = 0, in_pages = 0;
  withAllHeaps(engine, [&](const std::vector<Heap*>& heaps) {
    for (Heap* heap : heaps) {
      heap->mutex().assertHeld();
      heap->audit();
      reserved += heap->reservedBytes();
      if (heap->onPages()) in_pages += heap->reservedBytes();
      forEachSegment(*heap, [&](const HeapSegment& segment) {
        CISTERN_CHECK(engine.map.find(segment.device_base) == &segment);
        CISTERN_CHECK(engine.map.find(segment.deviceEnd() - 1) == &segment);
      });
      for (const ThreadCache* cache : heap->caches()) cache->blocks().audit();
    }
    if (engine.observed.load(std::memory_order_relaxed)) engine.observer->audit(heaps);
    engine.heaps.audit(heaps);
    CISTERN_CHECK(reserved <= engine.limit.reserved() + engine.hostPageBytes());
    engine.pages.audit(in_pages);
  });
}

}  // namespace cistern
