// cudaMalloc and its like, as the runtimes and programs ask the driver for them.
#include "interop/preload/hooks/serve.hpp"

using namespace cistern::preload;

namespace {

// In a capture it is the driver's: it is an error there, or not, by modes that the driver knows.
bool capturing() { return contexts().captures().maybe() && contexts().capturing(); }

// The driver refuses, and breaks the capture, as it would have for its own memory: so does this
// call, in the same modes.
CUresult whatCaptureSays(const Entry& entry) {
  CUevent event = nullptr;
  if (entry.pass(&Functions::cuEventCreate, &event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
    return CUDA_SUCCESS;
  const CUresult result = entry.pass(&Functions::cuEventQuery, event);
  (void)entry.pass(&Functions::cuEventDestroy_v2, event);
  return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

CUresult passMalloc(const Entry& entry, Passed why, CUdeviceptr* out, size_t bytes) {
  passed(why);
  return withRoom(entry, [&] { return entry.pass(&Functions::cuMemAlloc_v2, out, bytes); });
}

[[gnu::noinline]] CUresult allocate(CUdeviceptr* out, size_t bytes) {
  const Entry entry;
  if (!entry.serves() || out == nullptr || bytes == 0)
    return entry.pass(&Functions::cuMemAlloc_v2, out, bytes);
  if (passesForIpc()) return passMalloc(entry, Passed::kIpc, out, bytes);
  if (capturing()) return passMalloc(entry, Passed::kCapture, out, bytes);
  Timed timed(Served::kMalloc);
  Context* const context = contexts().currentServed();
  if (context == nullptr) return passMalloc(entry, Passed::kRefused, out, bytes);
  timed.byItself();
  contexts().serve();
  const CUresult result =
      serveAllocation(contexts(), *context, out, bytes, cistern::Stream{}, timed);
  timed.priced(bytes);
  timed.ended();
  return result;
}

[[gnu::noinline]] CUresult release(CUdeviceptr pointer) {
  const Entry entry;
  if (!entry.serves() || pointer == 0) return entry.pass(&Functions::cuMemFree_v2, pointer);
  if (capturing() && contexts().blocks().find(pointer)) {
    if (const CUresult refused = whatCaptureSays(entry); refused != CUDA_SUCCESS) return refused;
  }
  Timed timed(Served::kFree);
  timed.byItself();
  const std::optional<ServedBlock> block = takeBlock(contexts(), pointer);
  if (!block) {
    if (isWrongFree(pointer)) return CUDA_ERROR_INVALID_VALUE;
    return entry.pass(&Functions::cuMemFree_v2, pointer);
  }
  freeAfterAll(*block, pointer, timed);
  timed.ended();
  return CUDA_SUCCESS;
}

}  // namespace

// What is so as a rule comes first; whatever is not is looked at anew.
CISTERN_HOOK CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  Contexts* const all = Entry::usual();
  if (all == nullptr || out == nullptr || bytes == 0) [[unlikely]]
    return allocate(out, bytes);
  Timed timed(Served::kMalloc);
  Context* const context = all->currentAsBefore();
  if (context == nullptr || context->serving() == nullptr) [[unlikely]]
    return allocate(out, bytes);
  const Entry::Usual inside;
  const CUresult result = serveAllocation(*all, *context, out, bytes, cistern::Stream{}, timed);
  timed.priced(bytes);
  timed.ended();
  return result;
}

CISTERN_HOOK CUresult cuMemFree_v2(CUdeviceptr pointer) {
  Contexts* const all = Entry::usual();
  if (all == nullptr || pointer == 0) [[unlikely]]
    return release(pointer);
  Timed timed(Served::kFree);
  const std::optional<ServedBlock> block = takeBlock(*all, pointer);
  if (!block) [[unlikely]]
    return release(pointer);
  const Entry::Usual inside;
  freeAfterAll(*block, pointer, timed);
  timed.ended();
  return CUDA_SUCCESS;
}

// What is cached is free to the program: it may have it.
CISTERN_HOOK CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  const Entry entry;
  const CUresult result = entry.pass(&Functions::cuMemGetInfo_v2, free_bytes, total_bytes);
  if (result != CUDA_SUCCESS || !entry.serves() || free_bytes == nullptr) return result;
  Context* const context = contexts().current();
  Serving* const serving = context == nullptr ? nullptr : context->serving();
  if (serving == nullptr) return result;
  const std::uint64_t reserved = serving->device.reserved();
  const std::uint64_t held = contexts().blocks().bytesOf(*context);
  *free_bytes += reserved > held ? reserved - held : 0;
  return result;
}

CISTERN_HOOK CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes,
                                              CUdeviceptr pointer) {
  const Entry entry;
  if (!entry.serves()) return entry.pass(&Functions::cuMemGetAddressRange_v2, base, bytes, pointer);
  const std::optional<Blocks::Around> found = contexts().blocks().around(pointer);
  if (!found) return entry.pass(&Functions::cuMemGetAddressRange_v2, base, bytes, pointer);
  if (base != nullptr) *base = found->address;
  if (bytes != nullptr) *bytes = found->block.bytes;
  return CUDA_SUCCESS;
}
