// What runpath_program.cpp loads late: its calls of the driver come to Cistern as well.
#include "tests/preload/programs/gpu_names.hpp"

extern "C" __attribute__((visibility("default"))) int allocatesAndFrees() {
  for (int i = 0; i < 10; ++i) EXPECT(gpu::free(allocated()) == 0);
  return failures;
}
