// Questions to the device about a stream that come before anything is recorded there.
#pragma once

#include <fmt/format.h>

#include "cistern/device.hpp"
#include "cistern/error.hpp"

namespace cistern {

/// The handle names no stream of the device: it was destroyed.
inline bool isGone(const DeviceError& error) noexcept {
  return error.kind == ErrorKind::kInvalidHandle;
}

/// Whether a stream can be asked how far it is: it is alive, and no capture is recording it, which
/// asking would break. A stream that cannot be asked now may be asked later. Pre: it stays
/// meanwhile.
inline bool answersNow(Device& device, Stream stream) noexcept {
  const Result<CaptureInfo> info = device.captureInfo(stream);
  return info.ok() && info.value().status == CaptureStatus::kNone;
}

/// Throws unless an event can be recorded behind the last work of the stream. It throws
/// InvalidArgument for one that is being captured or not alive, DeviceFailure if the device does
/// not say.
inline void requireForgettable(Device& device, Stream stream) {
  const Result<CaptureInfo> info = device.captureInfo(stream);
  if (!info.ok() && !isGone(info.error())) throw DeviceFailure(info.error());
  if (info.ok() && info.value().status == CaptureStatus::kNone) return;
  throw InvalidArgument(fmt::format("stream {:#x} of {} device {} cannot be forgotten: it is {}",
                                    stream.raw, device.backend(), device.ordinal(),
                                    info.ok() ? "being captured" : "not alive"));
}

}  // namespace cistern
