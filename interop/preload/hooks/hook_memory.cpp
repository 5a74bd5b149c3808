#include "interop/preload/hooks/hook_memory.hpp"

namespace cistern::preload::GPU_NAMESPACE {
namespace {

Code passMalloc(const Entry& entry, DevicePointer* out, std::size_t bytes) {
  return entry.pass(&Functions::GPU_NAME(cuMemAlloc_v2, hipMalloc), out, bytes);
}

Code passFree(const Entry& entry, DevicePointer pointer) {
  return entry.pass(&Functions::GPU_NAME(cuMemFree_v2, hipFree), pointer);
}

// In a capture it is the driver's: it is an error there, or not, by modes that the driver knows.
bool capturing() { return contexts().captures().maybe() && contexts().capturing(); }

Code passMallocFor(const Entry& entry, Passed why, DevicePointer* out, std::size_t bytes) {
  passed(why);
  return withRoom(entry, [&] { return passMalloc(entry, out, bytes); });
}

}  // namespace

[[gnu::noinline]] Code detail::mallocAnew(DevicePointer* out, std::size_t bytes) {
  const Entry entry;
  if (!entry.serves() || out == nullptr || bytes == 0) return passMalloc(entry, out, bytes);
  if (passesForIpc()) return passMallocFor(entry, Passed::kIpc, out, bytes);
  if (capturing()) return passMallocFor(entry, Passed::kCapture, out, bytes);
  Timed timed(Served::kMalloc);
  Context* const context = contexts().currentServed();
  if (context == nullptr) return passMallocFor(entry, Passed::kRefused, out, bytes);
  timed.byItself();
  contexts().serve();
  const Code result = serveAllocation(contexts(), *context, out, bytes, Stream{}, timed);
  timed.priced(bytes);
  timed.ended();
  return result;
}

// In a capture the driver refuses, and breaks the capture, as it would have for its own memory.
[[gnu::noinline]] Code detail::freeAnew(DevicePointer pointer) {
  const Entry entry;
  const Address address = addressOf(pointer);
  if (!entry.serves() || address == 0) return passFree(entry, pointer);
  if (capturing() && contexts().blocks().find(address)) {
    if (const Code refused = driver()->whatCaptureSays(); refused != kSuccess) return refused;
  }
  Timed timed(Served::kFree);
  timed.byItself();
  const std::optional<ServedBlock> block = takeBlock(contexts(), address);
  if (!block) return isWrongFree(address) ? kInvalidValue : passFree(entry, pointer);
  freeAfterAll(*block, address, timed);
  timed.ended();
  return kSuccess;
}

Code withCached(const Entry& entry, Code result, std::size_t* free_bytes) {
  if (result != kSuccess || !entry.serves() || free_bytes == nullptr) return result;
  int device = 0;
  if (driver()->currentDevice(&device) == kSuccess) *free_bytes += contexts().keptOn(device);
  return result;
}

std::optional<Blocks::Around> blockAround(const Entry& entry, DevicePointer pointer) {
  if (!entry.opens()) return std::nullopt;
  return contexts().around(addressOf(pointer));
}

}  // namespace cistern::preload::GPU_NAMESPACE

// cudaMalloc and hipMalloc, as the runtimes and programs ask the driver for them.

using namespace cistern::preload::GPU_NAMESPACE;

CISTERN_HOOK Code GPU_NAME(cuMemAlloc_v2, hipMalloc)(DevicePointer* out, size_t bytes) {
  return told(serveMalloc(out, bytes));
}

CISTERN_HOOK Code GPU_NAME(cuMemFree_v2, hipFree)(DevicePointer pointer) {
  return told(serveFree(pointer));
}

CISTERN_HOOK Code GPU_NAME(cuMemGetInfo_v2, hipMemGetInfo)(size_t* free_bytes,
                                                           size_t* total_bytes) {
  const Entry entry;
  const Code result =
      entry.pass(&Functions::GPU_NAME(cuMemGetInfo_v2, hipMemGetInfo), free_bytes, total_bytes);
  return withCached(entry, result, free_bytes);
}

CISTERN_HOOK Code GPU_NAME(cuMemGetAddressRange_v2, hipMemGetAddressRange)(DevicePointer* base,
                                                                           size_t* bytes,
                                                                           DevicePointer pointer) {
  const Entry entry;
  const auto found = blockAround(entry, pointer);
  if (!found)
    return entry.pass(&Functions::GPU_NAME(cuMemGetAddressRange_v2, hipMemGetAddressRange), base,
                      bytes, pointer);
  if (base != nullptr) *base = devicePointer(found->address);
  if (bytes != nullptr) *bytes = found->block.bytes;
  return kSuccess;
}
