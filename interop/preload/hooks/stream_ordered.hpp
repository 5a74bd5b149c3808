// Memory in the order of a stream, such as cudaMallocAsync's and hipMallocAsync's: the code of the
// hooks of both. `function` is the driver's own, and `arguments` are those that the program gives.
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

// The part of a pool's bytes that the attribute is; null for other attributes.
inline std::uint64_t PoolBytes::*partOf(PoolAttribute attribute) noexcept {
  switch (attribute) {
    case kPoolUsed:
      return &PoolBytes::used;
    case kPoolUsedHigh:
      return &PoolBytes::used_high;
    case kPoolReserved:
      return &PoolBytes::reserved;
    case kPoolReservedHigh:
      return &PoolBytes::reserved_high;
    default:
      return nullptr;
  }
}

// Calls `call` with the device if it is a device's default pool.
template <class Call>
Code onDefault(PoolHandle pool, Call call) {
  if (!contexts().any()) return kSuccess;
  const std::optional<int> device = deviceOfDefault(pool);
  if (!device) return kSuccess;
  try {
    call(*device);
    return kSuccess;
  } catch (...) {
    return resultOfException();
  }
}

}  // namespace detail

/// `pool`: null where the call names none.
template <class Function, class... Arguments>
Code serveAsync(DevicePointer* out, std::size_t bytes, StreamHandle stream, PoolHandle pool,
                Function FunctionTable::*function, Arguments... arguments) {
  const Entry entry;
  const auto pass = [&] { return entry.pass(function, arguments...); };
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
  const Code result = serveAllocation(contexts(), *context, out, bytes, detail::heapOf(stream),
                                      timed, ServedBlock::kOfPool);
  if (result == kSuccess) context->serving()->pool.take(bytes);
  timed.ended();
  return result;
}

template <class Function>
Code serveFreeAsync(DevicePointer pointer, StreamHandle given, bool per_thread,
                    Function FunctionTable::*function) {
  const Entry entry;
  const StreamHandle stream = streamMeant(given, per_thread);
  const auto pass = [&] { return entry.pass(function, pointer, given); };
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

// ---- The default pool ---------------------------------------------------------------------------
//
// The driver answers first. It knows which values are valid, keeps the attributes that the program
// sets, and has the memory that Cistern has left to it. Then Cistern adds its own part.

template <class Function>
Code servePoolAttribute(Function FunctionTable::*function, PoolHandle pool, PoolAttribute attribute,
                        void* out) {
  const Entry entry;
  const auto part = detail::partOf(attribute);
  const Code result = entry.pass(function, pool, attribute, out);
  if (result != kSuccess || part == nullptr || !entry.serves()) return result;
  return detail::onDefault(pool, [&](int device) {
    *static_cast<std::uint64_t*>(out) += contexts().poolOn(device).*part;
  });
}

template <class Function>
Code serveSetPoolAttribute(Function FunctionTable::*function, PoolHandle pool,
                           PoolAttribute attribute, void* value) {
  const Entry entry;
  const Code result = entry.pass(function, pool, attribute, value);
  const bool resets = attribute == kPoolUsedHigh || attribute == kPoolReservedHigh;
  if (result != kSuccess || !resets || !entry.serves()) return result;
  return detail::onDefault(pool, [&](int device) {
    contexts().resetPoolHigh(
        device, attribute == kPoolUsedHigh ? &PoolUse::resetUsedHigh : &PoolUse::resetReservedHigh);
  });
}

/// `keep`: bytes that the pool may still have reserved afterwards, the driver's among them.
template <class Function>
Code servePoolTrim(Function FunctionTable::*function, PoolHandle pool, std::size_t keep) {
  const Entry entry;
  const Code result = entry.pass(function, pool, keep);
  if (result != kSuccess || !entry.serves()) return result;
  return detail::onDefault(pool, [&](int device) {
    std::uint64_t drivers = 0;
    if (driver()->poolAttribute(pool, kPoolReserved, &drivers) != kSuccess) return;
    contexts().trimPool(device, keep > drivers ? keep - drivers : 0);
  });
}

}  // namespace cistern::preload::GPU_NAMESPACE
