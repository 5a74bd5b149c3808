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
      default_pool(true, rules, options.backing == Backing::kPages),
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

}  // namespace cistern
