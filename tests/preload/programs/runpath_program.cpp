// A program that finds libraries by its own DT_RUNPATH, linked and loaded late: $ORIGIN is where
// the caller of dlopen lies, whatever stands before dlopen.
#include "tests/preload/programs/gpu_names.hpp"

int main() {
  gpu::begin();
  void* const late = dlopen("libfound_by_runpath.so", RTLD_NOW);
  if (!EXPECT(late != nullptr)) std::fprintf(stderr, "%s\n", dlerror());
  if (late == nullptr) return 1;
  const auto allocates = reinterpret_cast<int (*)()>(dlsym(late, "allocatesAndFrees"));
  EXPECT(allocates != nullptr);
  if (allocates != nullptr) EXPECT(allocates() == 0);
  return failures == 0 ? 0 : 1;
}
