#include "allocator/engine/core.hpp"

#include <fmt/format.h>

namespace cistern {
namespace {

Options inSegments(Options options) {
  options.backing = Backing::kSegments;
  return options;
}

}  // namespace

Core::Core(Device& on, const Options& how, std::uint64_t total)
    : device(on),
      options(how),
      rules(options),
      segment_rules(inSegments(options)),
      whole_rules(options, true),
      device_total(total),
      events(device),
      default_pool(true, rules, options.backing == Backing::kPages),
      heaps(default_pool, options.free_log, totals),
      streams(device, events, heaps),
      progress(device, events, streams),
      reports(device, segments, heaps, limit, hooks) {}

std::vector<Heap*> Core::heapsOf(const Pool& pool) const {
  if (!pool.isDefault()) return pool.heaps();
  std::vector<Heap*> own = heaps.all();
  std::erase_if(own, [&](const Heap* heap) { return &heap->pool() != &pool; });
  return own;
}

void Core::requireLive(Stream stream) {
  const Result<CaptureInfo> info = device.captureInfo(stream);
  if (info.ok() || info.error().kind != ErrorKind::kInvalidHandle) return;
  throw InvalidArgument(fmt::format("stream {:#x} is not a live stream of {} device {} ({})",
                                    stream.raw, device.backend(), device.ordinal(),
                                    info.error().name));
}

}  // namespace cistern
