#include <miopen/miopen.h>

#include "cistern/handles/hip.hpp"
#include "handles/vendor/vendor_library.hpp"

namespace cistern {
namespace {

// Never destroyed: it unloads kernels, and at exit the runtime that holds them may be gone.
struct Miopen {
  using Handle = miopenHandle_t;
  static constexpr const char* kName = "MIOpen";
  static constexpr auto kRuntime = &hip::runtime;
  static constexpr auto kSuccess = miopenStatusSuccess;
  static constexpr auto kNameOf = &miopenGetErrorString;
  static constexpr auto kCreate = CISTERN_CALL(miopenCreate);
  static constexpr auto kSetStream = CISTERN_CALL(miopenSetStream);
  static constexpr auto kGetStream = CISTERN_CALL(miopenGetStream);
};

}  // namespace

miopenHandle_t getMiopenHandle() { return handles::vendorHandle<Miopen>(); }

}  // namespace cistern
