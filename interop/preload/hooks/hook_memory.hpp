// Memory that every stream may use at once, such as cudaMalloc's and hipMalloc's: the code of the
// hooks of both. The usual case comes first, inline. Every other case is examined anew.
#pragma once

#include "interop/preload/hooks/serve.hpp"

namespace cistern::preload::GPU_NAMESPACE {

namespace detail {
/// Every other case.
Code mallocAnew(DevicePointer* out, std::size_t bytes);
Code freeAnew(DevicePointer pointer);
}  // namespace detail

[[gnu::always_inline]] inline Code serveMalloc(DevicePointer* out, std::size_t bytes) {
  Contexts* const all = Entry::usual();
  if (all == nullptr || out == nullptr || bytes == 0) [[unlikely]]
    return detail::mallocAnew(out, bytes);
  Timed timed(Served::kMalloc);
  Context* const context = all->currentAsBefore();
  if (context == nullptr || context->serving() == nullptr) [[unlikely]]
    return detail::mallocAnew(out, bytes);
  const Entry::Usual inside;
  const Code result = serveAllocation(*all, *context, out, bytes, Stream{}, timed);
  timed.priced(bytes);
  timed.ended();
  return result;
}

[[gnu::always_inline]] inline Code serveFree(DevicePointer pointer) {
  Contexts* const all = Entry::usual();
  if (all == nullptr || addressOf(pointer) == 0) [[unlikely]]
    return detail::freeAnew(pointer);
  Timed timed(Served::kFree);
  const std::optional<ServedBlock> block = takeBlock(*all, addressOf(pointer));
  if (!block) [[unlikely]]
    return detail::freeAnew(pointer);
  const Entry::Usual inside;
  freeAfterAll(*block, addressOf(pointer), timed);
  timed.ended();
  return kSuccess;
}

/// Adds cached memory to the free bytes, because the program may have it. `result` and *free_bytes
/// are the driver's.
Code withCached(const Entry& entry, Code result, std::size_t* free_bytes);

/// The block that the pointer lies in, also one of another process's; nothing if it is none of
/// Cistern's.
std::optional<Blocks::Around> blockAround(const Entry& entry, DevicePointer pointer);

}  // namespace cistern::preload::GPU_NAMESPACE
