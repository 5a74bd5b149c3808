#include "pools/captured.hpp"

#include "allocator/base/process.hpp"

namespace cistern {

Captured::~Captured() {
  pools_.allocator().unpin(pins_);
  if (counted_ && driverMayBeCalled()) pools_.letGo(pool_);
}

}  // namespace cistern
