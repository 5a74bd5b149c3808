// The result of a device call: a value, or a failure that names the vendor's code and the call.
// Failures are values here because the engine answers most of them by trying something else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "cistern/device_calls.hpp"
#include "cistern/error.hpp"

// X11/Xlib.h makes Status a macro. After this header the macro is back.
#pragma push_macro("Status")
#undef Status

namespace cistern {

/// The meaning of a failure to a caller, whichever vendor it came from.
enum class ErrorKind : std::uint8_t {
  kOutOfMemory,         ///< the device (or its address space) has no room for it
  kInvalidValue,        ///< an argument outside the call's contract
  kInvalidHandle,       ///< a stream, event, page or graph that is not (or no longer) one
  kNotSupported,        ///< this device or runtime cannot do it
  kNoDevice,            ///< no driver, or no such device
  kCaptureForbidden,    ///< the call may not be made while this capture mode is active
  kCaptureInvalidated,  ///< the capture was broken by an earlier call
  kWouldWaitForever,    ///< the simulated device only: the work waited for never ends
  kOther,
};

/// A failed device call. `code` and `name` are the vendor's own (2, "cudaErrorMemoryAllocation").
struct CISTERN_API DeviceError {
  Call call{};
  ErrorKind kind = ErrorKind::kOther;
  int code = 0;
  std::string_view name;  ///< the vendor's name for the code, there as long as the process
  std::string detail;     ///< what was wrong, when the backend knows more than the name says

  /// "malloc failed: cudaErrorMemoryAllocation (2)", then the detail.
  std::string message() const;
};

/// A DeviceError that a verb could not work around.
class CISTERN_API DeviceFailure : public Error {
 public:
  explicit DeviceFailure(DeviceError error) : Error(error.message()), error_(std::move(error)) {}
  const DeviceError& error() const noexcept { return error_; }

 private:
  DeviceError error_;
};

namespace detail {
/// Ends the program: it read from a Result what that does not hold. `wanted`: "value" or "error".
[[noreturn]] CISTERN_API void noSuchResult(const char* wanted) noexcept;
/// Throws DeviceFailure, for headers that a program may compile without exceptions.
[[noreturn]] CISTERN_API void throwFailure(const DeviceError& error);
}  // namespace detail

/// A value of type T, or a DeviceError. Must be looked at.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}            // NOLINT
  Result(DeviceError error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }
  /// Pre: ok().
  T& value() & {
    if (!ok()) detail::noSuchResult("value");
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    if (!ok()) detail::noSuchResult("value");
    return *std::get_if<0>(&state_);
  }
  /// Pre: !ok().
  const DeviceError& error() const {
    if (ok()) detail::noSuchResult("error");
    return *std::get_if<1>(&state_);
  }
  /// The value, or throws DeviceFailure.
  T orThrow() && {
    if (!ok()) detail::throwFailure(error());
    return std::move(*std::get_if<0>(&state_));
  }

 private:
  std::variant<T, DeviceError> state_;
};

/// Success, or a DeviceError.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(DeviceError error) : error_(std::move(error)), ok_(false) {}  // NOLINT

  bool ok() const noexcept { return ok_; }
  explicit operator bool() const noexcept { return ok_; }
  const DeviceError& error() const {
    if (ok_) detail::noSuchResult("error");
    return error_;
  }
  void orThrow() const {
    if (!ok_) detail::throwFailure(error_);
  }

 private:
  DeviceError error_;
  bool ok_ = true;
};

using Status = Result<void>;

}  // namespace cistern

#pragma pop_macro("Status")
