// The driver of the GPU that is here, with a fabric that it does not have: a page's handle on it is
// a descriptor in 64 bytes. Linked before the runtime (--wrap), for all that asks it for the
// driver's functions by name.
#pragma once

namespace cistern::test {

enum class Fabric {
  kOpen,      ///< pages are made for it, and have handles
  kNoHandle,  ///< pages are made for it, and then have none: drivers do so on some machines
  kRefused,   ///< no page is made for it: no channel is open to this process
  kUnknown    ///< the driver has not heard of it
};

/// From now on. Pages of before keep what they have.
void setFabric(Fabric fabric);

}  // namespace cistern::test
