// The simulated device's refusals: CUDA's own number for each reason, and its kind.
#pragma once

#include <string>

#include "cistern/status.hpp"

namespace cistern::sim {

/// The reason for refusing a call; the value is CUDA's code.
enum class Reason : int {
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidHandle = 400,
  kIllegalAddress = 700,
  kWouldWaitForever = 702,
  kNotSupported = 801,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureUnmatched = 903,
  kCaptureUnjoined = 904,
  kCaptureIsolation = 905,
  kCapturedEvent = 907,
  kCaptureWrongThread = 908,
  kUnknown = 999,
};

/// The error of a refused call; `detail` tells what was wrong with this one.
DeviceError refusal(Call call, Reason reason, std::string detail = {});

/// The usual reason for an error of that kind; for planned faults.
Reason reasonOf(ErrorKind kind);

}  // namespace cistern::sim
