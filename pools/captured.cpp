#include "pools/captured.hpp"

#include "allocator/base/process.hpp"

namespace cistern {

// The pool is there and in use, by this.
Captured::~Captured() {
  pools_.allocator().unpin(pins_);
  if (driverMayBeCalled()) pools_.letGo(pool_);
}

}  // namespace cistern
