// A program that is not linked to HIP: it loads it when it needs it, for itself alone. First it
// does without, as programs do on a machine that has none.
#include <dlfcn.h>

#include "tests/preload/programs/gpu_names.hpp"

namespace {

void* library = nullptr;

template <class Function>
Function* symbol(const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

void late() {
  EXPECT(dlsym(RTLD_DEFAULT, "hipFakeCalls") == nullptr);
  library = dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_LOCAL);
  if (!EXPECT(library != nullptr)) return;
  const auto allocate = symbol<hipError_t(void**, size_t)>("hipMalloc");
  const auto release = symbol<hipError_t(void*)>("hipFree");
  const auto counted = symbol<decltype(hipFakeCalls)>("hipFakeCalls");
  void* memory = nullptr;
  for (int i = 0; i < 100; ++i) {
    EXPECT(allocate(&memory, kBytes) == hipSuccess);
    EXPECT(release(memory) == hipSuccess);
  }
  if (served()) EXPECT(counted("hipMalloc") < 20);  // prices are taken with a few
}

// CUDA's driver beside it, as in a program for whichever GPU there is: each has its own memory.
void both() {
  late();
  void* const other = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!EXPECT(other != nullptr)) return;
  const auto function = [&](const char* name) { return dlsym(other, name); };
  void* context = nullptr;
  EXPECT(reinterpret_cast<int (*)(unsigned)>(function("cuInit"))(0) == 0);
  EXPECT(reinterpret_cast<int (*)(void**, int)>(function("cuDevicePrimaryCtxRetain"))(&context,
                                                                                      0) == 0);
  EXPECT(reinterpret_cast<int (*)(void*)>(function("cuCtxSetCurrent"))(context) == 0);
  const auto allocate =
      reinterpret_cast<int (*)(std::uint64_t*, std::size_t)>(function("cuMemAlloc_v2"));
  const auto release = reinterpret_cast<int (*)(std::uint64_t)>(function("cuMemFree_v2"));
  const auto hipAllocate = symbol<hipError_t(void**, size_t)>("hipMalloc");
  const auto hipRelease = symbol<hipError_t(void*)>("hipFree");
  for (int i = 0; i < 100; ++i) {
    std::uint64_t memory = 0;
    void* hip_memory = nullptr;
    EXPECT(allocate(&memory, kBytes) == 0 && hipAllocate(&hip_memory, kBytes) == hipSuccess);
    EXPECT(hipRelease(reinterpret_cast<void*>(memory)) == hipErrorInvalidValue);
    EXPECT(release(reinterpret_cast<std::uint64_t>(hip_memory)) == kInvalidValue);
    EXPECT(release(memory) == 0 && hipRelease(hip_memory) == hipSuccess);
  }
}

const Case kCases[] = {{"late", late}, {"both", both}};

}  // namespace

int main(int argc, char** argv) { return runCase(kCases, argc, argv); }
