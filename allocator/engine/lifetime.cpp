// An allocator begins, and ends.
#include <new>

#include "allocator/base/process.hpp"
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {
namespace {

// Where there are no pages, segments do what they would have done.
Options possibleOn(const Device& device, Options options) {
  if (!PageBacking::supportedBy(device)) options.backing = Backing::kSegments;
  return options;
}

/// All caches together may keep this part of the device; one of them may keep a large block of
/// `thread_cache` times the other.
constexpr std::uint64_t kCachesPart = 64, kLargeCache = 4;

Options inSegments(Options options) {
  options.backing = Backing::kSegments;
  return options;
}

// Where sizes are rounded in other ways, a block's size does not say which requests it is for.
CacheTable::Limits cacheLimits(Device& device, const Options& options) {
  if (options.thread_cache == 0 || !SizeRules(options).plain() || !BiasedGate::available())
    return {};
  const std::uint64_t all = device.memoryInfo().orThrow().total_bytes / kCachesPart;
  return {options.thread_cache, options.thread_cache * kLargeCache, all};
}

}  // namespace

CachingAllocator::CachingAllocator(Device& device, const Options& options,
                                   CacheTable::Limits cache_limits)
    : device_(device),
      options_(options),
      rules_(options_),
      segment_rules_(inSegments(options_)),
      whole_rules_(options_, true),
      default_pool_(true, rules_, options_.backing == Backing::kPages),
      events_(device),
      heaps_(default_pool_, options_.free_log, totals_),
      caches_(cache_limits, tick_, totals_),
      streams_(device, events_, heaps_),
      pending_(device, events_, streams_,
               [this](const PendingFrees::Pending& pending) { putBack(pending); }),
      progress_(device, events_, streams_),
      segment_backing_(device, options_, limit_, segments_, records_, pinned_segments_, places_,
                       tick_),
      reports_(device, segments_, heaps_, limit_, hooks_) {}

CachingAllocator::CachingAllocator(Device& device, const Options& options)
    : CachingAllocator(device, possibleOn(device, options),
                       cacheLimits(device, possibleOn(device, options))) {
  (void)driverMayBeCalled();  // registers for the exit, which must happen before it
  device_total_ = device_.memoryInfo().orThrow().total_bytes;
  setMemoryFraction(options_.memory_fraction);
  if (options_.limit != 0 && options_.limit < limit()) setLimit(options_.limit);
  if (options_.backing != Backing::kPages) return;
  pages_ = std::make_unique<PageBacking>(pages::Surroundings{device_, options_, limit_, heaps_,
                                                             segments_, streams_, progress_,
                                                             heaps_mutex_, places_, device_total_});
}

// In a child of fork nothing is: no lock can be had for sure, and the device is the parent's.
CachingAllocator::~CachingAllocator() {
  if (!made_.isHere()) {
    new (this) CachingAllocator(device_, Options{}, CacheTable::Limits{});
    return;
  }
  const bool driver = driverMayBeCalled();
  if (pages_) pages_->stop();
  flushCaches();
  for (Heap* heap : heaps_.all()) {
    const MutexLock lock(heap->mutex());
    for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
      for (Segment* s = heap->layout(kind).segments(); s; s = s->next) {
        forgetUses(*s);
      }
    }
    if (driver) segment_backing_.leave(*heap);
  }
  if (pages_) pages_->shutDown(driver);
}

void CachingAllocator::forgetUses(const Segment& segment) noexcept {
  for (const Block* b = segment.first; b; b = b->next) {
    if (b->state() == BlockState::kAllocated) delete usesOf(*b);
  }
}

}  // namespace cistern
