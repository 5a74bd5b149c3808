// The driver calls of an order. For context_order.cpp and order_work.cpp.
#pragma once

#include "interop/preload/driver/context_order.hpp"

namespace cistern::preload::GPU_NAMESPACE {

// Every stream that may have work: the known ones, and the hub with the work that it has taken
// over.
template <class Visit>
void ContextOrder::forEach(Visit visit) noexcept {
  visit(legacy_);
  for (Known& known : made_) visit(known);
  if (hub_.worked_at != 0) visit(hub_);
}

template <class Call>
Code ContextOrder::inContext(Call call) noexcept {
  return driver_.inContext(context_, call);
}

// If the order cannot be had on the device, the host waits, and the order holds. If that fails too,
// the context is broken, and nothing runs in it any more.
template <class Call>
void ContextOrder::orWait(Call call) noexcept {
  (void)inContext([&] {
    if (call() != kSuccess) {
      ++epoch_;
      (void)driver_.synchronizeContext();
      closed();
    }
    return kSuccess;
  });
}

}  // namespace cistern::preload::GPU_NAMESPACE
