#include "allocator/device/vendor/error_kind.hpp"

namespace cistern {

ErrorKind errorKind(int code) {
  switch (code) {
    case 2:  // memory allocation
      return ErrorKind::kOutOfMemory;
    case 1:    // invalid value
    case 17:   // invalid device pointer
    case 401:  // illegal state: to end a capture that never began, for one
    case 903:  // capture unmatched: it began on another stream
      return ErrorKind::kInvalidValue;
    case 400:  // invalid resource handle
    case 709:  // context is destroyed: what a stream that was destroyed may answer
      return ErrorKind::kInvalidHandle;
    case 36:   // call requires newer driver
    case 217:  // peer access unsupported
    case 500:  // symbol not found
    case 800:  // not permitted
    case 801:  // not supported
      return ErrorKind::kNotSupported;
    case 35:   // insufficient driver: none, or too old
    case 100:  // no device
    case 101:  // invalid device
      return ErrorKind::kNoDevice;
    case 900:  // capture unsupported
    case 902:  // capture merge
    case 905:  // capture isolation
    case 906:  // capture implicit: through the legacy default stream
    case 907:  // captured event
    case 908:  // capture, wrong thread
      return ErrorKind::kCaptureForbidden;
    case 901:  // capture invalidated
    case 904:  // capture unjoined
      return ErrorKind::kCaptureInvalidated;
    default:
      // Examples: a driver that is installed but broken (3, 46, 802 to 804), and errors of the
      // user's kernels (700, 719). Also a runtime that process exit has taken down (4).
      return ErrorKind::kOther;
  }
}

}  // namespace cistern
