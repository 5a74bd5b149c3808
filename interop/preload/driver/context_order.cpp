#include "interop/preload/driver/context_order.hpp"

#include <algorithm>

namespace cistern::preload {

void ContextOrder::created(CUstream stream) {
  const std::lock_guard lock(mutex_);
  streams_.push_back({stream, nullptr});
  if (hub_event_ != nullptr) (void)driver_.cuStreamWaitEvent(stream, hub_event_, 0);
}

bool ContextOrder::knows(CUstream stream) {
  const std::lock_guard lock(mutex_);
  return std::any_of(streams_.begin(), streams_.end(),
                     [&](const Made& made) { return made.stream == stream; });
}

void ContextOrder::destroying(CUstream stream) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(streams_.begin(), streams_.end(),
                                  [&](const Made& made) { return made.stream == stream; });
  if (found == streams_.end()) return;
  if (recordOn(found->event, stream) == CUDA_SUCCESS) ended_.push_back(found->event);
  streams_.erase(found);
}

// The legacy stream refuses to say where a stream that synchronises with it is captured.
bool ContextOrder::capturing() noexcept {
  const auto captured = [&](CUstream stream) {
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = driver_.cuStreamIsCapturing(stream, &status);
    return result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
  };
  const std::lock_guard lock(mutex_);
  return captured(CU_STREAM_LEGACY) ||
         std::any_of(streams_.begin(), streams_.end(),
                     [&](const Made& made) { return captured(made.stream); });
}

CUresult ContextOrder::recordOn(CUevent& event, CUstream stream) noexcept {
  if (event == nullptr) {
    const CUresult made = driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (made != CUDA_SUCCESS) return made;
  }
  return driver_.cuEventRecord(event, stream);
}

CUresult ContextOrder::gatherEnded() noexcept {
  while (!ended_.empty()) {
    const CUresult result = driver_.cuStreamWaitEvent(CU_STREAM_LEGACY, ended_.back(), 0);
    if (result != CUDA_SUCCESS) return result;
    (void)driver_.cuEventDestroy_v2(ended_.back());
    ended_.pop_back();
  }
  return CUDA_SUCCESS;
}

// The hub comes after every stream.
CUresult ContextOrder::gather() noexcept {
  if (const CUresult result = gatherEnded(); result != CUDA_SUCCESS) return result;
  for (Made& made : streams_) {
    CUresult result = recordOn(made.event, made.stream);
    if (result == CUDA_SUCCESS) result = driver_.cuStreamWaitEvent(CU_STREAM_LEGACY, made.event, 0);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// Every stream comes after the hub.
CUresult ContextOrder::spread() noexcept {
  CUresult result = recordOn(hub_event_, CU_STREAM_LEGACY);
  for (const Made& made : streams_) {
    if (result == CUDA_SUCCESS) result = driver_.cuStreamWaitEvent(made.stream, hub_event_, 0);
  }
  return result;
}

CUresult ContextOrder::barrier() noexcept {
  const std::lock_guard lock(mutex_);
  const CUresult gathered = gather();
  return gathered == CUDA_SUCCESS ? spread() : gathered;
}

CUresult ContextOrder::allAfter(CUevent event) noexcept {
  const std::lock_guard lock(mutex_);
  const CUresult waits = driver_.cuStreamWaitEvent(CU_STREAM_LEGACY, event, 0);
  return waits == CUDA_SUCCESS ? spread() : waits;
}

CUresult ContextOrder::fence(std::vector<CUevent>& events) noexcept {
  const std::lock_guard lock(mutex_);
  if (const CUresult result = gatherEnded(); result != CUDA_SUCCESS) return result;
  std::vector<CUstream> all{CU_STREAM_LEGACY};
  for (const Made& made : streams_) all.push_back(made.stream);
  for (CUstream stream : all) {
    CUevent event = nullptr;
    const CUresult result = recordOn(event, stream);
    if (event != nullptr) events.push_back(event);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace cistern::preload
