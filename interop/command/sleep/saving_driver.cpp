#include "interop/command/sleep/saving_driver.hpp"

#include <algorithm>
#include <cstdlib>

#include <dlfcn.h>
#include <fmt/format.h>

#include "allocator/base/bytes.hpp"

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

namespace {

using Code = int;  // nvmlReturn_t: 0 is success
using NvmlDevice = void*;

/// nvmlMemory_t
struct Memory {
  unsigned long long total, free, used;
};
/// nvmlProcessInfo_t
struct ProcessInfo {
  unsigned pid;
  unsigned long long used;  ///< all bits set: not known
  unsigned instance, part;
};

struct Library {
  Code (*init)() = nullptr;
  Code (*count)(unsigned*) = nullptr;
  Code (*device)(unsigned, NvmlDevice*) = nullptr;
  Code (*memory)(NvmlDevice, void*) = nullptr;
  Code (*processes)(NvmlDevice, unsigned*, void*) = nullptr;

  bool isWhole() const {
    return init != nullptr && count != nullptr && device != nullptr && memory != nullptr;
  }
};

template <class Function>
void bindFunction(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

Library load() {
  Library found;
  void* const file = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) return found;
  bindFunction(file, "nvmlInit_v2", found.init);
  bindFunction(file, "nvmlDeviceGetCount_v2", found.count);
  bindFunction(file, "nvmlDeviceGetHandleByIndex_v2", found.device);
  bindFunction(file, "nvmlDeviceGetMemoryInfo", found.memory);
  bindFunction(file, "nvmlDeviceGetComputeRunningProcesses_v3", found.processes);
  return found;
}

/// Null if it is not there, or cannot be used.
const Library* library() {
  static const Library loaded = load();
  static const bool works = loaded.isWhole() && loaded.init() == 0;
  return works ? &loaded : nullptr;
}

std::optional<std::uint64_t> bytesOf(const Library& nvml, NvmlDevice device, pid_t process) {
  if (nvml.processes == nullptr) return std::nullopt;
  std::vector<ProcessInfo> all(512);
  auto count = unsigned(all.size());
  if (nvml.processes(device, &count, all.data()) != 0) return std::nullopt;
  all.resize(std::min<std::size_t>(count, all.size()));
  const auto found = std::ranges::find(all, unsigned(process), &ProcessInfo::pid);
  if (found == all.end() || found->used == ~0ULL) return std::nullopt;
  return found->used;
}

// The library lists a process only while it has memory there. A process that it never lists may be
// of another PID namespace: then the GPU's free memory has to say it.
std::string lineOf(std::size_t gpu, const DeviceUse& before, const DeviceUse& after) {
  constexpr std::uint64_t kNoise = 1 << 20;
  if (before.process_bytes || after.process_bytes) {
    return fmt::format("  GPU {}: {} before, {} now\n", gpu,
                       formatBytes(before.process_bytes.value_or(0)),
                       formatBytes(after.process_bytes.value_or(0)));
  }
  const bool more = after.free_bytes > before.free_bytes;
  const std::uint64_t bytes =
      more ? after.free_bytes - before.free_bytes : before.free_bytes - after.free_bytes;
  if (bytes < kNoise) return {};
  return fmt::format("  GPU {}: {} {} free, of all processes\n", gpu, formatBytes(bytes),
                     more ? "more" : "less");
}

}  // namespace

std::vector<DeviceUse> deviceUse(pid_t process) {
  std::vector<DeviceUse> all;
  const Library* const nvml = library();
  unsigned count = 0;
  if (nvml == nullptr || nvml->count(&count) != 0) return all;
  for (unsigned i = 0; i < count; ++i) {
    DeviceUse& use = all.emplace_back();
    NvmlDevice device = nullptr;
    Memory memory{};
    if (nvml->device(i, &device) != 0) continue;
    if (nvml->memory(device, &memory) == 0) use.free_bytes = memory.free;
    use.process_bytes = bytesOf(*nvml, device, process);
  }
  return all;
}

std::string changeText(const std::vector<DeviceUse>& before, const std::vector<DeviceUse>& after) {
  std::string text;
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i)
    text += lineOf(i, before[i], after[i]);
  return text;
}

}  // namespace cistern::command
