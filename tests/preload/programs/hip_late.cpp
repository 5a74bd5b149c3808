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

const Case kCases[] = {{"late", late}};

}  // namespace

int main(int argc, char** argv) { return runCase(kCases, argc, argv); }
