// Markers, and the work between them: see context_order.hpp.
#include <algorithm>
#include <mutex>

#include "interop/preload/driver/order_calls.hpp"
#include "interop/preload/record/ledger.hpp"

namespace cistern::preload {
namespace {

// The last marker that the thread's own default stream comes after.
thread_local std::uint64_t own_behind = 0;

}  // namespace

// ---- Markers. Pre: the context is current. ------------------------------------------------------

// The legacy stream refuses to say where a stream that synchronises with it is captured.
bool ContextOrder::isCaptured(CUstream stream) noexcept {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = driver_.cuStreamIsCapturing(stream, &status);
  return result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

CUresult ContextOrder::recordOn(CUevent& event, CUstream stream) noexcept {
  if (event == nullptr) {
    const CUresult made = driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (made != CUDA_SUCCESS) return made;
  }
  return driver_.cuEventRecord(event, stream);
}

CUresult ContextOrder::makeHub() noexcept {
  if (hub_.stream != nullptr) return CUDA_SUCCESS;
  return driver_.cuStreamCreate(&hub_.stream, CU_STREAM_NON_BLOCKING);
}

CUresult ContextOrder::catchUp(Known& known) noexcept {
  if (known.behind >= marker_number_) return CUDA_SUCCESS;
  const CUresult result = driver_.cuStreamWaitEvent(known.stream, marker_, 0);
  if (result == CUDA_SUCCESS) known.behind = marker_number_;
  return result;
}

CUresult ContextOrder::catchUp(CUstream stream) noexcept {
  if (stream == CU_STREAM_PER_THREAD) {
    Known own{stream, own_behind, 0};
    const CUresult result = catchUp(own);
    own_behind = own.behind;
    return result;
  }
  if (Known* const known = find(stream)) return catchUp(*known);
  Known unknown{stream, 0, 0};
  return catchUp(unknown);
}

bool ContextOrder::isBehind(CUstream stream) noexcept {
  if (stream == CU_STREAM_PER_THREAD) return own_behind < marker_number_;
  const Known* const known = find(stream);
  return (known == nullptr ? 0 : known->behind) < marker_number_;
}

// Captured streams have no work to come but their graph's, which is launched elsewhere. What waits
// on the legacy stream is waited for by all per-thread default streams.
CUresult ContextOrder::catchUpAll() noexcept {
  CUresult result = CUDA_SUCCESS;
  const auto one = [&](Known& known) {
    if (captures_.maybe() && isCaptured(known.stream)) return;
    if (const CUresult caught = catchUp(known); caught != CUDA_SUCCESS) result = caught;
  };
  one(legacy_);
  for (Known& known : made_) one(known);
  return result;
}

// The event is free again at once: a wait is for what it was recorded behind at that time.
CUresult ContextOrder::putBehind(Known& later, CUstream earlier) noexcept {
  const CUresult result = recordOn(passing_, earlier);
  return result == CUDA_SUCCESS ? driver_.cuStreamWaitEvent(later.stream, passing_, 0) : result;
}

// A marker comes after the one before it.
CUresult ContextOrder::mark(Known& place) noexcept {
  CUresult result = catchUp(place);
  if (result == CUDA_SUCCESS) result = recordOn(marker_, place.stream);
  if (result == CUDA_SUCCESS) place.behind = marker_number_ = ++last_marker_;
  return result;
}

bool ContextOrder::hasWork(const Known& known) const noexcept {
  return known.worked_at != 0 || (anywhere_at_ != 0 && &known != &hub_) || !isFollowed();
}

CUresult ContextOrder::close() noexcept {
  if (!open_) return CUDA_SUCCESS;
  int with_work = 0;
  Known* last = nullptr;
  forEach([&](Known& known) {
    if (!hasWork(known)) return;
    ++with_work;
    last = &known;
  });
  CUresult result = CUDA_SUCCESS;
  if (with_work == 1) {
    result = mark(*last);
  } else if (with_work > 1) {
    result = makeHub();
    forEach([&](Known& known) {
      if (result == CUDA_SUCCESS && hasWork(known) && &known != &hub_)
        result = putBehind(hub_, known.stream);
    });
    if (result == CUDA_SUCCESS) result = mark(hub_);
  }
  if (result != CUDA_SUCCESS) return result;
  if (with_work > 0) add(record().barriers);
  closed();
  return result;
}

void ContextOrder::closed() noexcept {
  open_ = false;
  forEach([](Known& known) { known.worked_at = 0; });
  anywhere_at_ = submitting_any_ > 0 ? epoch_.load() : 0;
  has_work_ = anywhere_at_ != 0;
}

// ---- Work ---------------------------------------------------------------------------------------

ContextOrder::Entered ContextOrder::enter(CUstream stream, std::uint64_t& seen) noexcept {
  const std::lock_guard lock(captures_.beginning());
  bool captured = false;
  if (open_ || captures_.maybe() || isBehind(stream)) {
    orWait([&] {
      captured = captures_.maybe() && isCaptured(stream);
      if (captured) return CUDA_SUCCESS;
      const CUresult result = close();
      return result == CUDA_SUCCESS ? catchUp(stream) : result;
    });
  }
  if (captured) return Entered::kCaptured;
  Known* const known = find(stream);
  if (known == nullptr) return Entered::kUnknown;
  known->worked_at = seen = epoch_;
  own_worked_ |= stream == CU_STREAM_PER_THREAD;
  has_work_ = true;
  return Entered::kKnown;
}

void ContextOrder::worked(CUstream stream) noexcept {
  const std::lock_guard lock(captures_.beginning());
  if (find(stream) == nullptr) made_.push_back({stream, 0, 0});
  find(stream)->worked_at = epoch_;
  has_work_ = true;
}

void ContextOrder::enterAny() noexcept {
  const std::lock_guard lock(captures_.beginning());
  orWait([&] {
    const CUresult result = close();
    return result == CUDA_SUCCESS ? catchUpAll() : result;
  });
  anywhere_at_ = epoch_;
  has_work_ = true;
}

void ContextOrder::workedAny() noexcept {
  const std::lock_guard lock(captures_.beginning());
  anywhere_at_ = epoch_;
  has_work_ = true;
}

// ---- The host waits -----------------------------------------------------------------------------

// Work that is submitted from now on is told of anew. Who waits for the legacy stream may have
// waited for no per-thread default stream.
ContextOrder::Waiting ContextOrder::waiting() noexcept {
  const std::lock_guard lock(captures_.beginning());
  return {++epoch_, marker_number_};
}

void ContextOrder::waited(const Waiting& since, const CUstream* stream) noexcept {
  const std::lock_guard lock(captures_.beginning());
  const auto settle = [&](Known& known) {
    if (known.worked_at < since.epoch) known.worked_at = 0;
    known.behind = std::max(known.behind, stream == nullptr ? since.marker : 0);
  };
  if (stream != nullptr) {
    Known* const known = find(*stream);
    if (known != nullptr && (known != &legacy_ || !own_worked_)) settle(*known);
  } else {
    forEach(settle);
    if (anywhere_at_ < since.epoch && submitting_any_ == 0) anywhere_at_ = 0;
  }
  bool any = anywhere_at_ != 0;
  forEach([&](Known& known) { any |= known.worked_at != 0; });
  has_work_ = any;
}

}  // namespace cistern::preload
