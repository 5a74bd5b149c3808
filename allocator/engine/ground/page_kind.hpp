// The kinds of pages. Free pages of a kind serve its heaps; those of the device, overflow too.
#pragma once

#include <cstdint>

#include "cistern/types.hpp"

namespace cistern {

enum class PageKind : std::uint8_t {
  kDevice,   ///< memory of the device
  kHost,     ///< memory of the host, in a pool that lies there
  kOverflow  ///< memory of the host, for a pool of device memory when the device is full
};

/// Whether a heap with pages of `kind` may have such a page. A heap of overflow takes what room the
/// device has, too.
inline bool mayHold(PageKind kind, PageKind page) {
  return kind == page || (kind == PageKind::kOverflow && page == PageKind::kDevice);
}

inline Location locationOf(PageKind kind) {
  return kind == PageKind::kDevice ? Location::kDevice : Location::kHost;
}

}  // namespace cistern
