// The functions of the library, and the messages for a missing library or function.
#include "allocator/device/vendor/hip_runtime.hpp"

#include <array>
#include <string>

#include <dlfcn.h>
#include <fmt/format.h>

#include "allocator/device/vendor/hip_library.hpp"

namespace cistern::hip {
namespace {

// ---- The table ----------------------------------------------------------------------------------

#define CISTERN_HIP_TEXT_(name) #name,
#define CISTERN_HIP_TEXT(name) CISTERN_HIP_TEXT_(name)
#define CISTERN_HIP_TEXT_AS(name, type) CISTERN_HIP_TEXT(name)

constexpr std::array<const char*, kFunctionCount> kNames{
    CISTERN_HIP_FUNCTIONS(CISTERN_HIP_TEXT, CISTERN_HIP_TEXT_AS)};

// The types that the list spells out, of the functions that every version of the header declares.
static_assert(sizeof(static_cast<decltype(hipMalloc)::Type*>(&::hipMalloc)) > 0);
static_assert(sizeof(static_cast<decltype(hipHostMalloc)::Type*>(&::hipHostMalloc)) > 0);
static_assert(
    sizeof(static_cast<decltype(hipMallocFromPoolAsync)::Type*>(&::hipMallocFromPoolAsync)) > 0);

struct Runtime {
  LoadedLibrary library;
  std::string no_device_text;
  std::array<void*, kFunctionCount> functions{};
};

Runtime loadRuntime() {
  Runtime runtime;
  runtime.library = loadLibrary();
  if (runtime.library.handle == nullptr) {
    runtime.no_device_text = "no usable AMD GPU: " + runtime.library.trouble;
    return runtime;
  }
  runtime.no_device_text =
      "no usable AMD GPU: the kernel driver (/dev/kfd) is missing, may not be opened by this user, "
      "or shows no device to this process";
  for (std::size_t i = 0; i < kFunctionCount; ++i) {
    runtime.functions[i] = dlsym(runtime.library.handle, kNames[i]);
  }
  return runtime;
}

/// Looked for once, at the first call. Never closed or destroyed: calls come until the process
/// ends.
const Runtime& loaded() {
  static const Runtime& runtime = *new Runtime(loadRuntime());
  return runtime;
}

// ---- Codes of our own ---------------------------------------------------------------------------

// One for each function, above the vendor's codes. An enumeration without a type of its own holds
// all values that fit the bits of its largest enumerator.
constexpr int kFirstMissing = 1100;
static_assert(hipErrorTbd < kFirstMissing && hipErrorTbd >= 1024);
static_assert(kFirstMissing + int(kFunctionCount) <= 2048);

bool isMissing(hipError_t error) { return error >= kFirstMissing; }

}  // namespace

void* functionAt(FunctionNumber number) { return loaded().functions[number]; }

hipError_t answerWithout(FunctionNumber number) {
  if (loaded().library.handle == nullptr) return hipErrorNoDevice;
  return hipError_t(kFirstMissing + int(number));
}

int errorCode(hipError_t error) { return isMissing(error) ? hipErrorNotSupported : error; }

const char* errorName(hipError_t error) {
  if (isMissing(error)) return "hipErrorNotSupported";
  if (loaded().library.handle == nullptr) return "hipErrorNoDevice";  // the only one there is then
  return hipGetErrorName(error);
}

std::string errorText(hipError_t error) {
  if (isMissing(error)) {
    return fmt::format("{} has no {}", loaded().library.name, kNames[error - kFirstMissing]);
  }
  if (loaded().library.handle == nullptr) return noDeviceText();
  return hipGetErrorString(error);
}

const char* noDeviceText() { return loaded().no_device_text.c_str(); }

}  // namespace cistern::hip
