// A library on the driver, which a program loads late.
#include <cuda.h>

extern "C" __attribute__((visibility("default"))) CUresult allocateDeep(CUdeviceptr* out,
                                                                        size_t bytes) {
  return cuMemAlloc(out, bytes);
}
