#include "interop/preload/hooks/serve.hpp"

#include <new>

namespace cistern::preload {
CUresult resultOfException() noexcept {
  try {
    throw;
  } catch (const OutOfMemory&) {
    add(record().out_of_memory);
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (const DeviceFailure& failure) {
    return CUresult(failure.error().code);
  } catch (const InvalidArgument&) {
    return CUDA_ERROR_INVALID_HANDLE;
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

// Waits for what is cooling before it gives up: then nothing is left that would.
void* detail::allocateMissed(Serving& serving, std::size_t bytes, Stream stream) {
  try {
    return fast_path::miss(serving.allocator, bytes, stream);
  } catch (const OutOfMemory&) {
    if (!serving.cooling.settleWaiting(serving.allocator)) throw;
  }
  return serving.allocator.allocate(bytes, stream);
}

CUresult detail::allocationFailed(Serving& serving, void* memory) noexcept {
  if (memory != nullptr) serving.allocator.free(memory);
  return resultOfException();
}

// Freed twice, or in the middle of a block. The driver may have made a segment there.
bool isWrongFree(CUdeviceptr pointer) {
  const bool ours = contexts().cover(pointer);
  passed(ours ? Passed::kWrongFree : Passed::kForeignFree);
  return ours;
}

// The stream's own memory is its own again at once, in its order. cudaMalloc's, and what a
// per-thread default stream frees, of which there is one for each thread under one handle, waits in
// the cooling.
void freeAfter(const ServedBlock& block, CUdeviceptr pointer, CUstream stream) noexcept {
  Serving& serving = *block.context->serving();
  if (block.stream == Stream{} || stream == CU_STREAM_PER_THREAD) {
    (void)serving.device.inContext([&] {
      serving.cooling.addAfter({toPointer(pointer), block.stream != Stream{}}, stream);
      return CUDA_SUCCESS;
    });
    return;
  }
  try {
    serving.allocator.recordStream(toPointer(pointer), Stream(stream));
  } catch (...) {  // a stream that cannot be recorded: wait for all of them
    return serving.cooling.add({toPointer(pointer), true});
  }
  serving.allocator.free(toPointer(pointer));
}

}  // namespace cistern::preload
