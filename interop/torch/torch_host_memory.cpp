// The functions that Python calls for tensors in host memory.
#include <exception>

#include "torch_allocator.hpp"

/// Pools that the calling thread makes from now on lie in host memory (`ahead` is 1), or no more
/// (0).
extern "C" __attribute__((visibility("default"))) void cistern_torch_host_pools_ahead(int ahead) {
  cistern_torch::setHostPoolsAhead(ahead != 0);
}

/// Whether the memory at `pointer` is a block in host memory. False also for memory that is not
/// Cistern's. Pre: installed.
extern "C" __attribute__((visibility("default"))) int cistern_torch_in_host_memory(
    int device, const void* pointer) {
  try {
    return cistern::pools(device).allocator().locationOf(pointer) == cistern::Location::kHost ? 1
                                                                                              : 0;
  } catch (const std::exception&) {
    return 0;
  }
}
