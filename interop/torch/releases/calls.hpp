// PyTorch's verbs, called as each release's own code calls them: through the base class. Used by
// the self-test. A verb that a release lacks is passed over.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <ATen/core/CachingHostAllocator.h>

#include "torch_release.hpp"

namespace cistern_torch::calls {

using Device = theirs::CUDAAllocator;

inline void recordHistory(Device& device, bool enabled, theirs::CreateContextFn gather) {
  const auto when = enabled ? theirs::RecordContext::ALL : theirs::RecordContext::NEVER;
#if CISTERN_TORCH >= 211
  device.recordHistory(enabled, gather, 1000, when, true, {});
#else
  device.recordHistory(enabled, gather, 1000, when, true);
#endif
}

inline void setUseOnOOM(Device& device, TorchPoolId pool) {
#if CISTERN_TORCH >= 211
  device.setUseOnOOM(0, pool, true);
#else
  device.setUseOnOOM(0, pool);
#endif
}

inline void setNoSplit([[maybe_unused]] Device& device, [[maybe_unused]] TorchPoolId pool) {
#if CISTERN_TORCH >= 210
  device.setNoSplit(0, pool);
#endif
}

/// Sets the thread's text and returns what it then is.
inline std::string userMetadata([[maybe_unused]] Device& device, const std::string& text) {
#if CISTERN_TORCH >= 210
  device.setUserMetadata(text);
  return device.getUserMetadata();
#else
  return text;
#endif
}

inline bool noExpandableSegments([[maybe_unused]] Device& device) {
#if CISTERN_TORCH >= 210
  return device.getExpandableSegmentSizes(0).empty();
#else
  return true;
#endif
}

/// Whether the block has a stack.
inline bool hasContext([[maybe_unused]] Device& device, [[maybe_unused]] const void* block) {
#if CISTERN_TORCH >= 212
  return device.getContextForPointer(block) != nullptr;
#else
  return true;
#endif
}

/// When a segment came, relative to others; 0 in releases that do not say it.
template <class Segment>
std::int64_t orderOf([[maybe_unused]] const Segment& segment) {
  if constexpr (requires { segment.registration_counter; }) return segment.registration_counter;
  return 0;
}

inline void attachRejectionObserver([[maybe_unused]] Device& device) {
#if CISTERN_TORCH >= 212
  device.attachOomRejectionObserver([](auto&&...) {});
#endif
}

inline void markCapture([[maybe_unused]] Device& device) {
#if CISTERN_TORCH >= 213
  device.markCaptureBegin(0);
  device.markCaptureEnd(0);
#endif
}

/// Notes a text on the block. Whether the release knows notes.
inline bool annotate([[maybe_unused]] Device& device, [[maybe_unused]] const void* block,
                     [[maybe_unused]] const std::string& text) {
#if CISTERN_TORCH >= 214
  device.annotateMemory(block, text);
  return device.supportsUserMetadata();
#else
  return false;
#endif
}

/// The bytes that the pool has reserved, by the statistics; the largest number if they have none.
inline std::int64_t reservedIn([[maybe_unused]] Device& device, [[maybe_unused]] TorchPoolId pool) {
#if CISTERN_TORCH >= 213
  return device.getDeviceStats(0).reserved_bytes_by_private_pools[pool][0].current;
#else
  return std::numeric_limits<std::int64_t>::max();
#endif
}

/// Whether a block that is allocated and freed under record_history is seen so.
inline bool recordsHostHistory([[maybe_unused]] at::HostAllocator& host,
                               [[maybe_unused]] theirs::CreateContextFn gather) {
#if CISTERN_TORCH >= 214
  host.record_history(true, gather, 1000, theirs::RecordContext::ALL, true);
  const auto began = host.is_history_enabled();
  std::size_t held = 0;
  {
    const c10::DataPtr block = host.allocate(4096);
    for (const auto& segment : host.get_segments()) {
      const bool own = segment.address == std::size_t(block.get());
      if (own && segment.allocated && segment.context_when_allocated != nullptr)
        held = segment.size;
    }
  }
  const auto events = host.get_traces();
  host.record_external_register(&held, sizeof held);
  host.record_external_unregister(&held);
  const std::size_t registered = host.get_traces().size() - events.size();
  host.record_history(false, nullptr, 1, theirs::RecordContext::NEVER, true);
  return began && held == 4096 && events.size() == 3 && registered == 5 &&
         events.front().size_ == 4096 && !host.is_history_enabled();
#else
  return true;
#endif
}

}  // namespace cistern_torch::calls
