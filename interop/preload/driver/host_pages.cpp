// Pages of the host's memory. See driver_device.hpp.
#include "allocator/device/page_trial.hpp"
#include "interop/preload/driver/driver_device.hpp"

namespace cistern::preload::GPU_NAMESPACE {

// The device's memory is not concerned, so that no thread's turn has to be waited for.
Result<Page> DriverDevice::makeHostPage(HostPages kind, std::size_t bytes) {
  std::uint64_t handle = 0;
  const Code result =
      inContext([&] { return driver_.createHostPage(&handle, bytes, ordinal_, kind); });
  return outcome(Call::kCreateHostPage, result, Page{handle});
}

// Two threads may try at once: both find the same.
Status DriverDevice::tryHostPages() {
  if (!virtual_memory_.host_pages) return failure(Call::kCreateHostPage, kNotSupported);
  Status last;
  const HostPages kind = hostPagesThatWork([&](HostPages tried) {
    const std::uint64_t bytes = virtual_memory_.granularity;
    return last = tryMappingOf(*this, bytes, [&] { return makeHostPage(tried, bytes); });
  });
  if (kind != HostPages::kUntried) host_pages_ = kind;
  return kind == HostPages::kNone ? last : Status();
}

Result<Page> DriverDevice::doCreateHostPage(std::size_t bytes) {
  if (host_pages_ == HostPages::kUntried) {
    if (const Status tried = tryHostPages(); !tried.ok()) return tried.error();
  }
  const HostPages kind = host_pages_;
  if (kind == HostPages::kUntried) return failure(Call::kCreateHostPage, kOutOfMemory);
  if (kind == HostPages::kNone) return failure(Call::kCreateHostPage, kNotSupported);
  const Result<Page> page = makeHostPage(kind, bytes);
  if (page.ok()) took(page.value().raw, {bytes, Location::kHost});
  return page;
}

}  // namespace cistern::preload::GPU_NAMESPACE
