#include "allocator/engine/engine.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/process.hpp"
#include "allocator/device/per_thread_stream.hpp"
#include "allocator/engine/giving_back.hpp"
#include "allocator/engine/sharing/imports.hpp"
#include "allocator/engine/streams/cross_stream.hpp"

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
  if (most == 0 || !rules.plain() || !BiasedGate::available()) return {};
  const std::uint64_t all = total / kCachesPart;
  const std::uint64_t last = std::min(most * kLargeCache, CacheSizes::kMostBytes);
  return {most, last <= all ? last : 0, all};
}

}  // namespace

Engine::Engine(Device& on, const Options& how, std::uint64_t total)
    : device(on),
      options(how),
      rules(options),
      segment_rules(options, SizeRules::Place::kSegments),
      whole_rules(options, SizeRules::Place::kOwnSegments),
      device_total(total),
      totals(total),
      events(device),
      segments(*this),
      default_pool(true, rules, segments),
      heaps(default_pool, options.free_log, totals),
      streams(device, events, [this](Stream stream, bool gone) { heaps.setGone(stream, gone); }),
      progress(device, events, streams),
      pages(*this),
      caches(cacheLimits(options, rules, total), tick, totals),
      pending(device, events, streams,
              [this](const PendingFrees::Pending& ready) { putBack(*this, ready); }),
      pools(*this),
      imports(std::make_shared<Imports>(device)) {
  if (options.backing == Backing::kPages) default_pool.change(rules, pages);
}

Engine::~Engine() {
  const bool driver = driverMayBeCalled();
  imports->retry();
  pages.stop();
  flushCaches(*this);
  for (Heap* heap : heaps.all()) {
    const MutexLock lock(heap->mutex());
    forEachBlock(*heap, [](Block& block) {
      if (block.state() == BlockState::kAllocated && !ownership::isOwned(ownership::load(block)))
        delete static_cast<StreamUses*>(block.use.uses);
    });
    if (driver) segments.leave(*heap);
  }
  pages.shutDown(driver);
}

std::string Engine::deviceName() const {
  return fmt::format("{} device {} ({})", device.backend(), device.ordinal(), device.name());
}

void Engine::meet(Stream stream) {
  requireOneStream(device, stream);  // before it is asked anything
  const Result<CaptureInfo> info = device.captureInfo(stream);
  if (info.ok() || info.error().kind != ErrorKind::kInvalidHandle)
    return streams.registerStream(stream);
  throw InvalidArgument(fmt::format("stream {:#x} is not a live stream of {} device {} ({})",
                                    stream.raw, device.backend(), device.ordinal(),
                                    info.error().name));
}

}  // namespace cistern
