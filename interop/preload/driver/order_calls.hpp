// What an order asks of the driver. For context_order.cpp and order_work.cpp.
#pragma once

#include "interop/preload/driver/context_order.hpp"

namespace cistern::preload {

// Every stream that may have work: those that are known, and the hub with what it has taken over.
template <class Visit>
void ContextOrder::forEach(Visit visit) noexcept {
  visit(legacy_);
  for (Known& known : made_) visit(known);
  if (hub_.worked_at != 0) visit(hub_);
}

template <class Call>
CUresult ContextOrder::inContext(Call call) noexcept {
  CUcontext now = nullptr;
  if (const CUresult asked = driver_.cuCtxGetCurrent(&now); asked != CUDA_SUCCESS) return asked;
  if (now == context_) return call();
  if (const CUresult pushed = driver_.cuCtxPushCurrent_v2(context_); pushed != CUDA_SUCCESS)
    return pushed;
  const CUresult result = call();
  (void)driver_.cuCtxPopCurrent_v2(&now);
  return result;
}

// Where the order cannot be had on the device, the host waits, and it holds. Where that fails too,
// the context is broken, and nothing runs in it any more.
template <class Call>
void ContextOrder::orWait(Call call) noexcept {
  (void)inContext([&] {
    if (call() != CUDA_SUCCESS) {
      ++epoch_;
      (void)driver_.cuCtxSynchronize();
      closed();
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace cistern::preload
