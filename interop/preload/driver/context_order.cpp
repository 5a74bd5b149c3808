// Streams and cuts: see context_order.hpp.
#include "interop/preload/driver/context_order.hpp"

#include <algorithm>
#include <mutex>

#include "interop/preload/driver/order_calls.hpp"

namespace cistern::preload {

ContextOrder::~ContextOrder() {
  ContextOrder* self = this;
  followed_.compare_exchange_strong(self, nullptr);
}

void ContextOrder::unfollow() noexcept {
  const std::lock_guard lock(captures_.beginning());
  if (!isFollowed()) return;
  open();
  orWait([&] {
    const CUresult result = close();
    return result == CUDA_SUCCESS ? catchUpAll() : result;
  });
  followed_ = nullptr;
}

// ---- The program's streams ----------------------------------------------------------------------

ContextOrder::Known* ContextOrder::find(CUstream stream) noexcept {
  if (stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return &legacy_;
  const auto found = std::find_if(made_.begin(), made_.end(),
                                  [&](const Known& known) { return known.stream == stream; });
  return found == made_.end() ? nullptr : &*found;
}

bool ContextOrder::knows(CUstream stream) {
  const std::lock_guard lock(captures_.beginning());
  return find(stream) != nullptr;
}

void ContextOrder::created(CUstream stream) {
  const std::lock_guard lock(captures_.beginning());
  if (find(stream) == nullptr) made_.push_back({stream, 0, 0});
}

// The hub takes its work over. A new stream may get the handle, so nothing that is known of it
// stays.
void ContextOrder::destroying(CUstream stream) noexcept {
  const std::lock_guard lock(captures_.beginning());
  ++epoch_;
  Known* const known = find(stream);
  if (known == nullptr || known == &legacy_) return;
  if (hasWork(*known)) {
    orWait([&] {
      if (captures_.maybe() && isCaptured(stream)) return CUDA_SUCCESS;  // it will be broken
      const CUresult made = makeHub();
      if (made != CUDA_SUCCESS) return made;
      hub_.worked_at = epoch_;
      return putBehind(hub_, stream);
    });
  }
  made_.erase(made_.begin() + (known - made_.data()));
}

bool ContextOrder::capturing() noexcept {
  bool captured = false;
  (void)inContext([&] {
    captured = isCaptured(CU_STREAM_LEGACY) ||
               std::any_of(made_.begin(), made_.end(),
                           [&](const Known& known) { return isCaptured(known.stream); });
    return CUDA_SUCCESS;
  });
  return captured;
}

// ---- Cuts ---------------------------------------------------------------------------------------

void ContextOrder::open() noexcept {
  open_ = true;
  ++epoch_;
}

bool ContextOrder::cutAnew() noexcept {
  const std::lock_guard lock(captures_.beginning());
  if (captures_.maybe() || !isFollowed()) return false;
  open();
  return true;
}

void ContextOrder::beforeCapture() noexcept {
  if (open_) orWait([&] { return close(); });
}

CUresult ContextOrder::barrier() noexcept {
  if (isFollowed()) {
    open();
    return CUDA_SUCCESS;
  }
  anywhere_at_ = epoch_;
  has_work_ = true;
  open();
  return inContext([&] {
    const CUresult result = close();
    return result == CUDA_SUCCESS ? catchUpAll() : result;
  });
}

CUresult ContextOrder::reach(CUstream& hub) noexcept {
  const std::lock_guard lock(captures_.beginning());
  return inContext([&] {
    CUresult result = close();
    if (result == CUDA_SUCCESS) result = makeHub();
    if (result == CUDA_SUCCESS) result = catchUp(hub_);
    hub = hub_.stream;
    return result;
  });
}

// A marker behind the last one and the event. What the streams have had since the last cut is not
// waited for: it is still to be marked by the next.
CUresult ContextOrder::allAfter(CUevent event) noexcept {
  const std::lock_guard lock(captures_.beginning());
  return inContext([&] {
    CUresult result = close();
    if (result == CUDA_SUCCESS) result = makeHub();
    if (result == CUDA_SUCCESS) result = driver_.cuStreamWaitEvent(hub_.stream, event, 0);
    if (result == CUDA_SUCCESS) result = mark(hub_);
    ++epoch_;
    return result != CUDA_SUCCESS || isFollowed() ? result : catchUpAll();
  });
}

CUresult ContextOrder::fence(std::vector<CUevent>& events) noexcept {
  CUresult result = CUDA_SUCCESS;
  forEach([&](Known& known) {
    if (result != CUDA_SUCCESS) return;
    CUevent event = nullptr;
    result = recordOn(event, known.stream);
    if (event != nullptr) events.push_back(event);
  });
  return result;
}

}  // namespace cistern::preload
