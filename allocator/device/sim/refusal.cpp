#include "allocator/device/sim/refusal.hpp"

namespace cistern::sim {
namespace {

struct Meaning {
  ErrorKind kind;
  const char* name;
};

Meaning meaningOf(Reason reason) {
  switch (reason) {
    case Reason::kInvalidValue:
      return {ErrorKind::kInvalidValue, "invalid value"};
    case Reason::kOutOfMemory:
      return {ErrorKind::kOutOfMemory, "out of memory"};
    case Reason::kNoDevice:
      return {ErrorKind::kNoDevice, "no device"};
    case Reason::kInvalidHandle:
      return {ErrorKind::kInvalidHandle, "invalid handle"};
    case Reason::kIllegalAddress:
      return {ErrorKind::kInvalidValue, "illegal address"};
    case Reason::kWouldWaitForever:
      return {ErrorKind::kWouldWaitForever, "would wait forever"};
    case Reason::kNotSupported:
      return {ErrorKind::kNotSupported, "not supported"};
    case Reason::kCaptureUnsupported:
      return {ErrorKind::kCaptureForbidden, "forbidden in capture"};
    case Reason::kCaptureInvalidated:
      return {ErrorKind::kCaptureInvalidated, "capture broken"};
    case Reason::kCaptureUnmatched:
      return {ErrorKind::kInvalidValue, "capture unmatched"};
    case Reason::kCaptureUnjoined:
      return {ErrorKind::kCaptureInvalidated, "capture unjoined"};
    case Reason::kCaptureIsolation:
      return {ErrorKind::kCaptureForbidden, "capture isolation"};
    case Reason::kCapturedEvent:
      return {ErrorKind::kCaptureForbidden, "captured event"};
    case Reason::kCaptureWrongThread:
      return {ErrorKind::kCaptureForbidden, "wrong thread"};
    case Reason::kUnknown:
      break;
  }
  return {ErrorKind::kOther, "unknown error"};
}

}  // namespace

DeviceError refusal(Call call, Reason reason, std::string detail) {
  const Meaning meaning = meaningOf(reason);
  return {call, meaning.kind, static_cast<int>(reason), meaning.name, std::move(detail)};
}

Reason reasonOf(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kOutOfMemory:
      return Reason::kOutOfMemory;
    case ErrorKind::kInvalidValue:
      return Reason::kInvalidValue;
    case ErrorKind::kInvalidHandle:
      return Reason::kInvalidHandle;
    case ErrorKind::kNotSupported:
      return Reason::kNotSupported;
    case ErrorKind::kNoDevice:
      return Reason::kNoDevice;
    case ErrorKind::kCaptureForbidden:
      return Reason::kCaptureUnsupported;
    case ErrorKind::kCaptureInvalidated:
      return Reason::kCaptureInvalidated;
    case ErrorKind::kWouldWaitForever:
      return Reason::kWouldWaitForever;
    case ErrorKind::kOther:
      break;
  }
  return Reason::kUnknown;
}

}  // namespace cistern::sim
