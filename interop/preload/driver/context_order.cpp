// Streams and cuts: see context_order.hpp.
#include "interop/preload/driver/context_order.hpp"

#include <algorithm>

#include "interop/preload/driver/order_calls.hpp"

namespace cistern::preload::GPU_NAMESPACE {

ContextOrder::~ContextOrder() {
  ContextOrder* self = this;
  followed_.compare_exchange_strong(self, nullptr);
}

void ContextOrder::unfollow() noexcept {
  const MutexLock lock(captures_.beginning());
  if (!isFollowed()) return;
  open();
  orWait([&] {
    const Code result = close();
    return result == kSuccess ? catchUpAll() : result;
  });
  followed_ = nullptr;
}

// ---- The program's streams ----------------------------------------------------------------------

ContextOrder::Known* ContextOrder::find(StreamHandle stream) noexcept {
  if (stream == kLegacyStream || stream == kPerThreadStream) return &legacy_;
  const auto found = std::find_if(made_.begin(), made_.end(),
                                  [&](const Known& known) { return known.stream == stream; });
  return found == made_.end() ? nullptr : &*found;
}

bool ContextOrder::knows(StreamHandle stream) {
  const MutexLock lock(captures_.beginning());
  return find(stream) != nullptr;
}

void ContextOrder::created(StreamHandle stream) {
  const MutexLock lock(captures_.beginning());
  if (find(stream) != nullptr) return;
  made_.push_back({stream, 0, 0});
  // If nobody reports its work, it comes after the last cut from the start.
  if (!isFollowed()) orWait([&] { return catchUp(made_.back()); });
}

// The hub takes its work over. A new stream may get the handle, so nothing that is known of it
// stays.
void ContextOrder::destroying(StreamHandle stream) noexcept {
  const MutexLock lock(captures_.beginning());
  ++epoch_;
  Known* const known = find(stream);
  if (known == nullptr || known == &legacy_) return;
  if (hasWork(*known)) {
    orWait([&] {
      if (captures_.maybe() && isCaptured(stream)) return kSuccess;  // it will be broken
      const Code made = makeHub();
      if (made != kSuccess) return made;
      hub_.worked_at = epoch_;
      return putBehind(hub_, stream);
    });
  }
  made_.erase(made_.begin() + (known - made_.data()));
}

bool ContextOrder::capturing() noexcept {
  bool captured = false;
  (void)inContext([&] {
    captured = isCaptured(kLegacyStream) ||
               std::any_of(made_.begin(), made_.end(),
                           [&](const Known& known) { return isCaptured(known.stream); });
    return kSuccess;
  });
  return captured;
}

// ---- Cuts ---------------------------------------------------------------------------------------

void ContextOrder::open() noexcept {
  open_ = true;
  ++epoch_;
}

bool ContextOrder::cutAnew() noexcept {
  const MutexLock lock(captures_.beginning());
  if (captures_.maybe() || !isFollowed()) return false;
  open();
  return true;
}

void ContextOrder::beforeCapture() noexcept {
  if (open_) orWait([&] { return close(); });
}

Code ContextOrder::barrier() noexcept {
  if (isFollowed()) {
    open();
    return kSuccess;
  }
  anywhere_at_ = epoch_;
  has_work_ = true;
  open();
  return inContext([&] {
    const Code result = close();
    return result == kSuccess ? catchUpAll() : result;
  });
}

Code ContextOrder::reach(StreamHandle& hub) noexcept {
  const MutexLock lock(captures_.beginning());
  return inContext([&] {
    Code result = close();
    if (result == kSuccess) result = makeHub();
    if (result == kSuccess) result = catchUp(hub_);
    hub = hub_.stream;
    return result;
  });
}

// Puts a marker behind the last one and the event. It does not wait for the streams' work since the
// last cut: the next marker covers that.
Code ContextOrder::allAfter(EventHandle event) noexcept {
  const MutexLock lock(captures_.beginning());
  return inContext([&] {
    Code result = close();
    if (result == kSuccess) result = makeHub();
    if (result == kSuccess) result = driver_.waitEvent(hub_.stream, event);
    if (result == kSuccess) result = mark(hub_);
    ++epoch_;
    return result != kSuccess || isFollowed() ? result : catchUpAll();
  });
}

Code ContextOrder::fence(std::vector<EventHandle>& events) noexcept {
  Code result = kSuccess;
  forEach([&](Known& known) {
    if (result != kSuccess) return;
    EventHandle event = nullptr;
    result = recordOn(event, known.stream);
    if (event != nullptr) events.push_back(event);
  });
  return result;
}

}  // namespace cistern::preload::GPU_NAMESPACE
