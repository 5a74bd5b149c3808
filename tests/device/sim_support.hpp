// What the simulated device's own tests share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "allocator/device/sim/sim_device.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {

using sim::Access;
using sim::AccessKind;
using sim::kNever;
using sim::SimConfig;
using sim::SimDevice;

inline constexpr std::uint64_t kPage = 2 * kMiB;

inline Access reads(Address address, std::uint64_t bytes = kPage) {
  return {address, bytes, AccessKind::kRead};
}
inline Access writes(Address address, std::uint64_t bytes = kPage) {
  return {address, bytes, AccessKind::kWrite};
}

inline void launch(SimDevice& device, Stream stream, const std::string& name,
                   std::vector<Access> accesses, std::uint64_t duration_ns = 1'000) {
  device.launch(stream, {name, std::move(accesses), duration_ns, nullptr}).orThrow();
}

inline void launchEndless(SimDevice& device, Stream stream) {
  launch(device, stream, "endless", {}, kNever);
}

inline Stream newStream(SimDevice& device) { return device.createStream().orThrow(); }

inline Event recorded(SimDevice& device, Stream stream) {
  const Event event = device.createEvent().orThrow();
  device.recordEvent(event, stream).orThrow();
  return event;
}

/// Makes `waiting` run after what is queued on `first`.
inline void order(SimDevice& device, Stream first, Stream waiting) {
  device.waitEvent(waiting, recorded(device, first)).orThrow();
}

/// A page of kPage bytes at `address`, ready for use.
inline void mapWithAccess(SimDevice& device, Address address, Page page) {
  device.map(address, kPage, page).orThrow();
  device.setAccess(address, kPage).orThrow();
}

inline DeviceGraphExec endAndInstantiate(SimDevice& device, Stream stream) {
  return device.instantiate(device.endCapture(stream).orThrow()).orThrow();
}

inline ErrorKind kindOf(const Status& status) { return status.error().kind; }
template <class T>
ErrorKind kindOf(const Result<T>& result) {
  return result.error().kind;
}

}  // namespace cistern::test
