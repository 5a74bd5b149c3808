// A vendor's library, described for current_handle.hpp out of the library's own functions. A struct
// names them:
//
//   struct Calls {
//     using Handle = ...;                                    // a pointer
//     static constexpr const char* kName = "...";            // for messages and statistics
//     static constexpr auto kRuntime = &cuda::runtime;       // the vendor's
//     static constexpr auto kSuccess = ...;                  // the status of a call that worked
//     static constexpr auto kNameOf = &...;                  // a status's name; "" if it has none
//     static constexpr auto kTextOf = &...;                  // left out: it has no text either
//     static constexpr auto kCreate = CISTERN_CALL(...);
//     static constexpr auto kDestroy = CISTERN_CALL(...);    // left out: never destroyed
//     static constexpr auto kSetStream = CISTERN_CALL(...);  // left out: it has none
//     static constexpr auto kGetStream = CISTERN_CALL(...);  // left out: it cannot tell
//   };
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cistern/handles/library.hpp"
#include "handles/current_handle.hpp"
#include "handles/vendor/runtime.hpp"

/// A LibraryCall. Its name is as written here: the library may define it as a macro for a newer
/// function.
#define CISTERN_CALL(function) \
  ::cistern::handles::LibraryCall { &function, #function }

/// A case of a switch, for a library that has no names for its statuses.
#define CISTERN_STATUS_NAME(status) \
  case status:                      \
    return #status

namespace cistern::handles {

/// A function of a library, with its name for messages.
template <class Function>
struct LibraryCall {
  Function* call;
  const char* name;
};
template <class Function>
LibraryCall(Function*, const char*) -> LibraryCall<Function>;

/// The library that `Calls` names the functions of. A library that does more adds to it in a struct
/// of its own: cuda/cublas.cpp.
template <class Calls>
struct VendorLibrary {
  using Handle = typename Calls::Handle;
  using Status = decltype(Calls::kSuccess);
  static constexpr const char* kName = Calls::kName;

  static Handle create(int device) {
    const CreationScope scope(Calls::kRuntime(), device);
    Handle handle = nullptr;
    const auto create = [&] { return Calls::kCreate.call(&handle); };
    require(callWithRoom(device, Calls::kSuccess, create), Calls::kCreate.name);
    return handle;
  }
  static void destroy(Handle handle) noexcept requires requires { Calls::kDestroy; }
  { (void)Calls::kDestroy.call(handle); }
  static void setStream(Handle handle, Stream stream) requires requires { Calls::kSetStream; }
  { setNative(Calls::kSetStream, handle, stream); }
  static Stream streamOf(Handle handle) requires requires { Calls::kGetStream; }
  { return getNative(Calls::kGetStream, handle); }

  /// Throws LibraryError unless `status` says that the call worked.
  static void require(Status status, const char* call) {
    if (status == Calls::kSuccess) return;
    std::string text;
    if constexpr (requires { Calls::kTextOf; }) text = Calls::kTextOf(status);
    throw LibraryError(kName, call, int(status), Calls::kNameOf(status), std::move(text));
  }

 private:
  template <class Result, class Native>
  static void setNative(LibraryCall<Result(Handle, Native)> set, Handle handle, Stream stream) {
    require(set.call(handle, reinterpret_cast<Native>(stream.raw)), set.name);
  }
  template <class Result, class Native>
  static Stream getNative(LibraryCall<Result(Handle, Native*)> get, Handle handle) {
    Native stream = nullptr;
    require(get.call(handle, &stream), get.name);
    return Stream{reinterpret_cast<std::uintptr_t>(stream)};
  }
};

/// The getter of a library that is described by its functions alone.
template <class Calls>
typename Calls::Handle vendorHandle() {
  return currentHandle<VendorLibrary<Calls>>();
}

}  // namespace cistern::handles
