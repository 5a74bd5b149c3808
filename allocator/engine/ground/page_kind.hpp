// The kinds of pages. Memory of one kind never serves a heap of another.
#pragma once

#include <cstdint>

#include "cistern/types.hpp"

namespace cistern {

enum class PageKind : std::uint8_t {
  kDevice,   ///< memory of the device
  kHost,     ///< memory of the host, in a pool that lies there
  kOverflow  ///< memory of the host, for a pool of device memory when the device is full
};

inline Location locationOf(PageKind kind) {
  return kind == PageKind::kDevice ? Location::kDevice : Location::kHost;
}

}  // namespace cistern
