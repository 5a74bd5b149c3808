#include "allocator/engine/caching_allocator.hpp"

#include <new>

#include <fmt/format.h>

#include "allocator/base/process.hpp"

namespace cistern {
namespace {

// Where there are no pages, segments do what they would have done.
Options possibleOn(const Device& device, Options options) {
  if (!PageBacking::supportedBy(device)) options.backing = Backing::kSegments;
  return options;
}

}  // namespace

CachingAllocator::CachingAllocator(Device& device, const Options& options)
    : engine_(device, possibleOn(device, options), device.memoryInfo().orThrow().total_bytes) {
  (void)driverMayBeCalled();  // registers for the exit, which must happen before it
  setMemoryFraction(options.memory_fraction);
  if (options.limit != 0 && options.limit < limit()) setLimit(options.limit);
}

// In a child of fork nothing is given back: no lock can be had for sure, and the device is the
// parent's.
CachingAllocator::~CachingAllocator() {
  if (!engine_.core.made.isHere()) new (&engine_) Engine(engine_.core.device, Options{}, 0);
}

void CachingAllocator::recordStream(void* pointer, Stream stream) {
  if (pointer == nullptr) return;
  Core& core = engine_.core;
  if (core.heaps.find(stream) == nullptr) {
    core.requireLive(stream);
    core.streams.registerStream(stream);
  }
  if (!engine_.cross_stream.record(toAddress(pointer), stream))
    core.reports.misuse("recordStream", toAddress(pointer));
}

// At exit there is nobody left who would ask it.
void CachingAllocator::forgetStream(Stream stream) {
  if (stream == Stream{}) throw InvalidArgument("the default stream cannot be forgotten: it stays");
  if (driverMayBeCalled()) engine_.core.streams.unregisterStream(stream);
}

MempoolId_t CachingAllocator::poolFor(Stream stream) {
  const Route route = engine_.pools.route(stream);
  return route.pool ? route.pool->id() : MempoolId_t{};
}

void CachingAllocator::setMemoryFraction(double fraction) {
  if (!(fraction > 0 && fraction <= 1)) {
    throw InvalidArgument(
        fmt::format("memory fraction {} is outside the range: more than 0, at most 1", fraction));
  }
  setLimit(std::uint64_t(fraction * double(engine_.core.device_total)));
}

}  // namespace cistern
