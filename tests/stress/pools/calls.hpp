// The program's own calls to the device: a planned fault that meets one is no finding, so the call
// is made again.
#pragma once

#include "cistern/device.hpp"
#include "tests/stress/pools/log.hpp"

namespace cistern::storm {

/// The kinds of failure that rounds plan. Any other is the device's own word.
inline bool isPlanned(const DeviceError& error) {
  return error.kind == ErrorKind::kOutOfMemory || error.kind == ErrorKind::kOther;
}

template <class Call>
auto insist(Call call) {
  auto result = call();
  for (int tries = 0; !result.ok() && isPlanned(result.error()) && tries < 2'000; ++tries) {
    result = call();
  }
  return result;
}

/// Outside captures a call of the program's that does not work in the end is a finding.
inline void mustWork(const Status& status) {
  if (!status) violation(status.error().message());
}

/// insist, for a verb that throws.
template <class Verb>
auto insistVerb(Verb verb) {
  for (int tries = 0;; ++tries) {
    try {
      return verb();
    } catch (const DeviceFailure& failure) {
      if (!isPlanned(failure.error()) || tries == 2'000) throw;
    }
  }
}

/// What is queued on `after` from now on follows what is queued on `before` by now.
inline Status order(Device& device, Stream before, Stream after) {
  const Result<Event> event = insist([&] { return device.createEvent(); });
  if (!event) return event.error();
  Status ordered = insist([&] { return device.recordEvent(event.value(), before); });
  if (ordered) ordered = insist([&] { return device.waitEvent(after, event.value()); });
  (void)insist([&] { return device.destroyEvent(event.value()); });
  return ordered;
}

}  // namespace cistern::storm
