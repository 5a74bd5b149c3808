#include "tests/support/vendor_work/hip_kernels.hpp"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <hip/hiprtc.h>

#include "allocator/device/vendor/loaded_runtime.hpp"
#include "tests/hip/device/kernel_table.h"

namespace cistern::test {
namespace {

constexpr const char* kSource = R"(
typedef unsigned int u32;
typedef unsigned long u64;

extern "C" __global__ void cisternFill(u32* words, u64 count, u32 seed) {
  const u64 stride = u64(gridDim.x) * blockDim.x;
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
    words[i] = seed + u32(i);
}

extern "C" __global__ void cisternVerify(const u32* words, u64 count, unsigned long long* wrong,
                                         u32 seed) {
  const u64 stride = u64(gridDim.x) * blockDim.x;
  unsigned long long mine = 0;
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)
    mine += words[i] != seed + u32(i);
  if (mine != 0) atomicAdd(wrong, mine);
}

// The clock counts at 100 MHz.
extern "C" __global__ void cisternDelay(u64 nanoseconds) {
  const u64 start = __builtin_amdgcn_s_memrealtime();
  while ((__builtin_amdgcn_s_memrealtime() - start) * 10 < nanoseconds) __builtin_amdgcn_s_sleep(8);
}
)";

// ---- On a played GPU ---------------------------------------------------------------------------

// As the code object lays them out.
struct FillParameters {
  std::uint64_t words, count;
  std::uint32_t seed;
};
struct VerifyParameters {
  std::uint64_t words, count, wrong;
  std::uint32_t seed;
};
struct DelayParameters {
  std::uint64_t nanoseconds;
};

template <class Parameters>
const Parameters& parametersOf(const PlayedLaunch* launch) {
  return *reinterpret_cast<const Parameters*>(launch->arguments);
}

void fill(const PlayedLaunch* launch) {
  const auto& parameters = parametersOf<FillParameters>(launch);
  if (parameters.count == 0) return;
  auto* words = static_cast<std::uint32_t*>(
      launch->at(launch, parameters.words, parameters.count * sizeof(std::uint32_t), 1));
  for (std::uint64_t i = 0; i < parameters.count; ++i)
    words[i] = parameters.seed + std::uint32_t(i);
}

void verify(const PlayedLaunch* launch) {
  const auto& parameters = parametersOf<VerifyParameters>(launch);
  if (parameters.count == 0) return;
  const auto* words = static_cast<const std::uint32_t*>(
      launch->at(launch, parameters.words, parameters.count * sizeof(std::uint32_t), 0));
  auto* wrong =
      static_cast<std::uint64_t*>(launch->at(launch, parameters.wrong, sizeof(std::uint64_t), 1));
  for (std::uint64_t i = 0; i < parameters.count; ++i)
    *wrong += words[i] != parameters.seed + std::uint32_t(i);
}

void delay(const PlayedLaunch*) {}
std::uint64_t delayTime(const PlayedLaunch* launch) {
  return parametersOf<DelayParameters>(launch).nanoseconds;
}

PlayedKernelFunction* playedGpu() {
  return reinterpret_cast<PlayedKernelFunction*>(dlsym(RTLD_DEFAULT, "playedKernel"));
}

void standInForKernels() {
  PlayedKernelFunction* const stand_in = playedGpu();
  if (stand_in == nullptr) return;
  stand_in("cisternFill", fill, nullptr);
  stand_in("cisternVerify", verify, nullptr);
  stand_in("cisternDelay", delay, delayTime);
}

// ---- The compiler ------------------------------------------------------------------------------

/// What the runtime's file has, so that no second runtime is loaded.
void* runtimeHandle() {
  Dl_info file{};
  void* const function = hip::functionAt(hip::kNumberOf_hipMalloc);
  if (function == nullptr || dladdr(function, &file) == 0) return nullptr;
  return dlopen(file.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

#define HIPRTC(name) reinterpret_cast<decltype(&::name)>(runtimeFunction(#name))

void require(hiprtcResult result, const char* what) {
  if (result != HIPRTC_SUCCESS)
    throw std::runtime_error(std::string("hiprtc: ") + what + ": " + std::to_string(int(result)));
}

std::vector<char> compiled() {
  if (runtimeFunction("hiprtcCompileProgram") == nullptr)
    throw std::runtime_error("HIP's runtime compiler, hiprtc, is not here");
  hiprtcProgram program = nullptr;
  require(HIPRTC(hiprtcCreateProgram)(&program, kSource, "test_work.hip", 0, nullptr, nullptr),
          "creating the program");
  require(HIPRTC(hiprtcCompileProgram)(program, 0, nullptr), "compiling the test kernels");
  std::size_t bytes = 0;
  require(HIPRTC(hiprtcGetCodeSize)(program, &bytes), "asking for the code's size");
  std::vector<char> code(bytes);
  require(HIPRTC(hiprtcGetCode)(program, code.data()), "asking for the code");
  (void)HIPRTC(hiprtcDestroyProgram)(&program);
  return code;
}

// ---- Registration: what hipcc's code does before main -------------------------------------------

/// The names of the kernels; their addresses stand for them.
constexpr const char* kNames[] = {"cisternFill", "cisternVerify", "cisternDelay"};

// Captures of HIP 5.2 see no other launches than those of registered kernels.
struct FatBinary {
  std::uint32_t magic = 0x48495046;  // "HIPF"
  std::uint32_t version = 1;
  const void* binary = nullptr;
  void* unused = nullptr;
};

void registerKernels() {
  static const std::vector<char> code = compiled();
  static const FatBinary fat{.binary = code.data()};
  auto* const register_binary =
      reinterpret_cast<void** (*)(const void*)>(runtimeFunction("__hipRegisterFatBinary"));
  auto* const register_function =
      reinterpret_cast<void (*)(void**, const void*, char*, const char*, unsigned, void*, void*,
                                void*, void*, int*)>(runtimeFunction("__hipRegisterFunction"));
  if (register_binary == nullptr || register_function == nullptr)
    throw std::runtime_error("HIP's runtime registers no kernels");
  void** const module = register_binary(&fat);
  for (const char* const& name : kNames) {
    register_function(module, &name, const_cast<char*>(name), name, ~0U, nullptr, nullptr, nullptr,
                      nullptr, nullptr);
  }
}

}  // namespace

void* runtimeFunction(const char* name) {
  static void* const runtime = runtimeHandle();
  if (runtime == nullptr) return nullptr;
  if (void* const found = dlsym(runtime, name); found != nullptr) return found;
  static void* const beside =
      dlopen("libhiprtc.so", RTLD_LAZY);  // where it is a library of its own
  return beside == nullptr ? nullptr : dlsym(beside, name);
}

bool isPlayedGpu() { return playedGpu() != nullptr; }

const void* launchable(TestKernel kernel) {
  static const bool once = [] {
    standInForKernels();
    registerKernels();
    return true;
  }();
  (void)once;
  return &kNames[std::size_t(kernel)];
}

}  // namespace cistern::test
