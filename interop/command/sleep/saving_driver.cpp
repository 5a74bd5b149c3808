#include "interop/command/sleep/saving_driver.hpp"

#include <cstdlib>

#include <dlfcn.h>
#include <fmt/format.h>

#include "cistern/error.hpp"

namespace cistern::command {
namespace {

constexpr const char* kDriverLibrary = "libcuda.so.1";

template <class Function>
void bindCall(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

SavingDriver functionsOf(void* library) {
  SavingDriver found;
  bindCall(library, "cuInit", found.init);
  bindCall(library, "cuDriverGetVersion", found.version);
  bindCall(library, "cuGetErrorName", found.error_name);
  bindCall(library, "cuCheckpointProcessGetState", found.state);
  bindCall(library, "cuCheckpointProcessLock", found.lock);
  bindCall(library, "cuCheckpointProcessCheckpoint", found.save);
  bindCall(library, "cuCheckpointProcessRestore", found.restore);
  bindCall(library, "cuCheckpointProcessUnlock", found.unlock);
  return found;
}

std::string versionOf(const SavingDriver& driver) {
  int version = 0;
  if (driver.version == nullptr || driver.version(&version) != kDriverSuccess) return "unknown";
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace

std::string SavingDriver::describe(const char* call, DriverCode code) const {
  const char* name = nullptr;
  if (error_name != nullptr && error_name(code, &name) == kDriverSuccess && name != nullptr)
    return fmt::format("{}: {}", call, name);
  return fmt::format("{}: error {}", call, code);
}

SavingDriver loadSavingDriver() {
  void* const library = dlopen(kDriverLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw Error(
        fmt::format("NVIDIA's driver is not there, and it alone can save a process (ROCm's "
                    "cannot): {}",
                    dlerror()));
  const SavingDriver driver = functionsOf(library);
  if (driver.init == nullptr || driver.state == nullptr || driver.lock == nullptr ||
      driver.save == nullptr || driver.restore == nullptr || driver.unlock == nullptr)
    throw Error(
        fmt::format("NVIDIA's driver is too old to save a process: it is of CUDA {}, and "
                    "the calls came with CUDA 12.8 (driver 570)",
                    versionOf(driver)));
  (void)unsetenv("CUDA_VISIBLE_DEVICES");  // the process may have other GPUs than this command
  if (const DriverCode code = driver.init(0); code != kDriverSuccess)
    throw Error(
        fmt::format("NVIDIA's driver cannot be used ({})", driver.describe("cuInit", code)));
  return driver;
}

}  // namespace cistern::command
