#include "interop/preload/driver/submitted_work.hpp"

#include "allocator/base/thread_slots.hpp"
#include "interop/preload/process/cancellation.hpp"

namespace cistern::preload::GPU_NAMESPACE {

void Work::enter() noexcept {
  if (thread_.inside) {
    order_ = nullptr;
    return;
  }
  const NotCancelled whole;
  atFree();
  thread_.inside = true;
  const ContextOrder::Entered entered = order_->enter(stream_, seen_);
  thread_.inside = false;
  known_ = entered == ContextOrder::Entered::kKnown;
  if (entered == ContextOrder::Entered::kCaptured) order_ = nullptr;
  if (known_) passedAt(stream_) = {stream_, seen_};
  if (entered == ContextOrder::Entered::kUnknown) seen_ = 0;
}

// An unknown handle is a stream's if the driver has taken it.
void Work::leave(Code result) noexcept {
  if (known_ || result == kSuccess) order_->worked(stream_);
}

void Work::anyBegins() noexcept {
  ContextOrder* const order = ContextOrder::followed();
  if (order == nullptr || thread_.inside) return;
  const NotCancelled whole;
  if (!thread_.ends) atThreadExit(&threadEnds, nullptr);
  thread_.ends = true;
  if (!thread_.any) ContextOrder::anyBegins();
  thread_.any = true;
  thread_.inside = true;
  order->enterAny();
  thread_.inside = false;
}

void Work::anyEnded() noexcept {
  thread_.any = false;
  if (ContextOrder* const order = ContextOrder::followed()) order->workedAny();
  ContextOrder::anyEnded();
}

}  // namespace cistern::preload::GPU_NAMESPACE
