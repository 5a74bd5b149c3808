#include <miopen/miopen.h>

#include "cistern/handles/hip.hpp"
#include "cistern/handles/library.hpp"
#include "handles/current_handle.hpp"
#include "handles/vendor/runtime.hpp"

namespace cistern {
namespace {

void require(miopenStatus_t status, const char* call) {
  if (status == miopenStatusSuccess) return;
  throw LibraryError("MIOpen", call, int(status), miopenGetErrorString(status), "");
}

// Never destroyed: it unloads kernels, and at exit the runtime that holds them may be gone.
struct Miopen {
  using Handle = miopenHandle_t;
  static constexpr const char* kName = "MIOpen";

  static Handle create(int device) {
    const handles::CreationScope scope(hip::runtime(), device);
    Handle handle = nullptr;
    const auto create = [&] { return miopenCreate(&handle); };
    require(handles::callWithRoom(device, miopenStatusSuccess, create), "miopenCreate");
    return handle;
  }
  static void setStream(Handle handle, Stream stream) {
    require(miopenSetStream(handle, reinterpret_cast<hipStream_t>(stream.raw)), "miopenSetStream");
  }
  static Stream streamOf(Handle handle) {
    hipStream_t stream = nullptr;
    require(miopenGetStream(handle, &stream), "miopenGetStream");
    return Stream{reinterpret_cast<std::uintptr_t>(stream)};
  }
};

}  // namespace

miopenHandle_t getMiopenHandle() { return handles::currentHandle<Miopen>(); }

}  // namespace cistern
