#include "allocator/engine/engine.hpp"

#include "allocator/base/process.hpp"

namespace cistern {
namespace {

/// All caches together may keep this part of the device; one of them may keep a large block of
/// `thread_cache` times the other.
constexpr std::uint64_t kCachesPart = 64, kLargeCache = 4;

// Where sizes are rounded in other ways, a block's size does not say which requests it is for.
CacheTable::Limits cacheLimits(const Core& core) {
  const std::uint64_t most = core.options.thread_cache;
  if (most == 0 || !core.rules.plain() || !BiasedGate::available()) return {};
  return {most, most * kLargeCache, core.device_total / kCachesPart};
}

std::unique_ptr<PageBacking> makePages(Core& core) {
  if (core.device_total == 0 || core.options.backing != Backing::kPages) return nullptr;
  return std::make_unique<PageBacking>(pages::Surroundings{
      core.device, core.options, core.limit, core.heaps, core.segments, core.streams, core.progress,
      core.heaps_mutex, core.places, core.device_total});
}

void forgetUses(const Segment& segment) noexcept {
  for (const Block* b = segment.first; b; b = b->next) {
    if (b->state() == BlockState::kAllocated) delete usesOf(*b);
  }
}

}  // namespace

Engine::Engine(Device& device, const Options& options, std::uint64_t total)
    : core(device, options, total),
      caches(cacheLimits(core), core.tick, core.totals),
      segments(core.device, core.options, core.limit, core.segments, core.records,
               core.pinned_segments, core.places, core.tick),
      pages(makePages(core)),
      flusher(core, caches, pages.get()),
      cross_stream(core, pages.get(), flusher),
      stream_heaps(core, pages.get()),
      giving_back(core, segments, pages.get(), flusher, cross_stream),
      pools(core, caches, pages.get(), stream_heaps),
      accounting(core, caches, segments, pages.get()),
      fallbacks(core, segments, pages.get(), flusher, cross_stream, pools, giving_back, accounting),
      captures(core, pages.get(), flusher, cross_stream, stream_heaps, fallbacks),
      free_path(core, caches, flusher, cross_stream, captures),
      allocate_path(core, caches, cross_stream, stream_heaps, pools, fallbacks, captures,
                    free_path) {}

Engine::~Engine() {
  const bool driver = driverMayBeCalled();
  if (pages) pages->stop();
  flusher.flush();
  for (Heap* heap : core.heaps.all()) {
    const MutexLock lock(heap->mutex());
    for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
      for (Segment* s = heap->layout(kind).segments(); s; s = s->next) forgetUses(*s);
    }
    if (driver) segments.leave(*heap);
  }
  if (pages) pages->shutDown(driver);
}

}  // namespace cistern
