#include "interop/preload/hooks/serve.hpp"

#include <new>

#include "allocator/engine/fast_path.hpp"
#include "interop/preload/driver/work.hpp"

namespace cistern::preload {
namespace {

// Waits for what is cooling before it gives up: then nothing is left that would.
[[gnu::noinline]] void* missed(Serving& serving, std::size_t bytes, Stream stream) {
  try {
    return fast_path::miss(serving.allocator, bytes, stream);
  } catch (const OutOfMemory&) {
    if (!serving.cooling.settleWaiting(serving.allocator)) throw;
  }
  return serving.allocator.allocate(bytes, stream);
}

void* allocateNow(Serving& serving, std::size_t bytes, Stream stream) {
  return fast_path::allocate<fast_path::AllSizes>(
      CacheTable::last(), fast_path::OfAllocator{serving.allocator.engine().core.caches}, bytes,
      stream, [](void* memory) { return memory; }, [&] { return missed(serving, bytes, stream); });
}

void freeNow(CachingAllocator& allocator, CUdeviceptr pointer, const void* caller) noexcept {
  fast_path::free<fast_path::AllSizes>(
      CacheTable::last(), fast_path::OfAllocator{allocator.engine().core.caches},
      toPointer(pointer), caller, [] {},
      [&](Block* block) {
        fast_path::freeElsewhere(allocator, toPointer(pointer), caller, block);
      });
}

}  // namespace

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

CUresult serveAllocation(Context& context, CUdeviceptr* out, std::size_t bytes, Stream stream) {
  Serving& serving = *context.serving();
  void* memory = nullptr;
  try {
    memory = allocateNow(serving, bytes, stream);
    ServedBlock block{&context, bytes, stream, 0};
    if (traces()) block.traced = 1 + traceAllocation(bytes, stream.raw);
    contexts().blocks().add(toAddress(memory), block);
  } catch (...) {
    if (memory != nullptr) serving.allocator.free(memory);
    return resultOfException();
  }
  addTo(record().requested, record().requested_peak, bytes);
  *out = toAddress(memory);
  return CUDA_SUCCESS;
}

std::optional<ServedBlock> takeBlock(CUdeviceptr pointer) {
  const std::optional<ServedBlock> block = contexts().blocks().take(pointer);
  if (!block) return block;
  takeFrom(record().requested, block->bytes);
  if (block->traced != 0) traceFree(block->traced - 1);
  return block;
}

// Freed twice, or in the middle of a block. The driver may have made a segment there.
bool isWrongFree(CUdeviceptr pointer) {
  const bool ours = contexts().cover(pointer);
  passed(ours ? Passed::kWrongFree : Passed::kForeignFree);
  return ours;
}

void freeAfterAll(const ServedBlock& block, CUdeviceptr pointer) noexcept {
  Serving& serving = *block.context->serving();
  ContextOrder& order = block.context->order();
  const bool of_stream = block.stream != Stream{};
  Work::atFree();
  if (!order.isFollowed() || !order.cut()) [[unlikely]]
    return serving.cooling.add({toPointer(pointer), of_stream});
  if (of_stream) return serving.cooling.give(serving.allocator, {toPointer(pointer), true});
  freeNow(serving.allocator, pointer, __builtin_return_address(0));
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
