// The functions of the library, and the messages for a missing library or function.
#include "allocator/device/vendor/loaded_runtime.hpp"

#include <array>

#include <dlfcn.h>
#include <fmt/format.h>

#define CISTERN_QUOTED_(name) #name
#define CISTERN_QUOTED(name) CISTERN_QUOTED_(name)

namespace cistern::GPU_NAMESPACE {
namespace {

// ---- The table ----------------------------------------------------------------------------------

#define CISTERN_TEXT(name) CISTERN_QUOTED(name),
#define CISTERN_TEXT_AS(name, type) CISTERN_TEXT(name)

constexpr std::array<const char*, kFunctionCount> kNames{
    CISTERN_RUNTIME_FUNCTIONS(CISTERN_TEXT, CISTERN_TEXT_AS)};

struct Runtime {
  LoadedLibrary library;
  std::string no_device_text;
  std::array<void*, kFunctionCount> functions{};
};

Runtime loadRuntime() {
  Runtime runtime;
  runtime.library = loadLibrary(librarySearch());
  void* const handle = runtime.library.handle;
  runtime.no_device_text = kNoDevice + (handle == nullptr ? runtime.library.trouble : kNoDriver);
  if (handle == nullptr) return runtime;
  for (std::size_t i = 0; i < kFunctionCount; ++i) {
    runtime.functions[i] = dlsym(handle, symbolOf(kNames[i], handle));
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

// One for each function, above the vendor's codes (and below cudaErrorApiFailureBase). An
// enumeration without a type of its own holds all values that fit the bits of its largest
// enumerator, which is above 1024 for both vendors.
constexpr int kFirstMissing = 1100;
static_assert(GPU(ErrorUnknown) < kFirstMissing && kFirstMissing + int(kFunctionCount) <= 2048);

bool isMissing(GPU(Error_t) error) {
  return error >= kFirstMissing && error < kFirstMissing + int(kFunctionCount);
}

}  // namespace

void* functionAt(FunctionNumber number) { return loaded().functions[number]; }

GPU(Error_t) answerWithout(FunctionNumber number) {
  if (loaded().library.handle == nullptr) return GPU(ErrorNoDevice);
  return GPU(Error_t)(kFirstMissing + int(number));
}

int errorCode(GPU(Error_t) error) { return isMissing(error) ? GPU(ErrorNotSupported) : error; }

const char* errorName(GPU(Error_t) error) {
  if (isMissing(error)) return CISTERN_QUOTED(GPU(ErrorNotSupported));
  if (loaded().library.handle == nullptr)  // the only one there is then
    return CISTERN_QUOTED(GPU(ErrorNoDevice));
  return GPU(GetErrorName)(error);
}

std::string errorText(GPU(Error_t) error) {
  if (isMissing(error)) {
    return fmt::format("{} has no {}", loaded().library.file, kNames[error - kFirstMissing]);
  }
  if (loaded().library.handle == nullptr) return noDeviceText();
  return GPU(GetErrorString)(error);
}

const char* noDeviceText() { return loaded().no_device_text.c_str(); }

std::string runtimeText() {
  const LoadedLibrary& library = loaded().library;
  if (library.handle == nullptr) return {};
  const std::string version = versionText(library.handle);
  return version.empty() ? library.file : fmt::format("{}, {}", version, library.file);
}

}  // namespace cistern::GPU_NAMESPACE
