// Memory in the order of a stream, such as cudaMallocAsync's and hipMallocAsync's: the code of the
// hooks of both. `pass` calls the driver's own function.
#pragma once

#include "interop/preload/hooks/serve.hpp"
#include "interop/preload/served/served_pools.hpp"

namespace cistern::preload::GPU_NAMESPACE {

namespace detail {

// A capture makes nodes of these calls: the driver's.
inline bool isCaptured(StreamHandle stream) {
  if (!contexts().captures().maybe()) return false;
  CaptureState state = kNoCapture;
  const Code result = driver()->isCapturing(stream, &state);
  return result != kSuccess || state != kNoCapture;
}

// A per-thread default stream has memory that every stream may use: one handle names one stream for
// each thread.
inline Stream heapOf(StreamHandle stream) {
  return stream == kPerThreadStream ? Stream{} : Stream(stream);
}

// Whether Cistern is to serve it; else why not.
inline bool mayServe(StreamHandle stream, PoolHandle pool) {
  if (isCaptured(stream)) {
    passed(Passed::kGraph);
    return false;
  }
  if (pool != nullptr ? !isDefaultPool(pool) : !defaultPoolIsCurrent()) {
    passed(Passed::kPool);
    return false;
  }
  return true;
}

}  // namespace detail

/// `pool`: null where the call names none.
template <class Pass>
Code serveAsync(const Entry& entry, DevicePointer* out, std::size_t bytes, StreamHandle stream,
                PoolHandle pool, Pass pass) {
  if (!entry.serves() || out == nullptr || bytes == 0) return pass();
  if (!detail::mayServe(stream, pool)) return withRoom(entry, pass);
  Timed timed(Served::kMallocAsync);
  Context* const context = contexts().currentServed();
  if (context == nullptr) {
    passed(Passed::kRefused);
    return withRoom(entry, pass);
  }
  if (!contexts().has(*context, stream)) {  // the memory is to be of the stream's device
    passed(Passed::kOtherContext);
    return withRoom(entry, pass);
  }
  const Code result =
      serveAllocation(contexts(), *context, out, bytes, detail::heapOf(stream), timed);
  timed.ended();
  return result;
}

template <class Pass>
Code serveFreeAsync(const Entry& entry, DevicePointer pointer, StreamHandle stream, Pass pass) {
  const Address address = addressOf(pointer);
  if (!entry.serves() || address == 0 || detail::isCaptured(stream)) return pass();
  Timed timed(Served::kFreeAsync);
  timed.byItself();
  const std::optional<ServedBlock> block = takeBlock(contexts(), address);
  if (!block) return isWrongFree(address) ? kInvalidValue : pass();
  freeAfter(*block, address, stream);
  timed.ended();
  return kSuccess;
}

}  // namespace cistern::preload::GPU_NAMESPACE
