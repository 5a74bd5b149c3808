// PyTorch's verbs, called as each release's own code calls them: through the base class. Used by
// the self-test. A verb that a release lacks is passed over.
#pragma once

#include <string>

#include <ATen/core/CachingHostAllocator.h>

#include "release.hpp"

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

}  // namespace cistern_torch::calls
