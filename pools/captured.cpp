#include "pools/captured.hpp"

#include <algorithm>

#include "allocator/base/process.hpp"
#include "allocator/engine/engine.hpp"
#include "pools/pool_registry.hpp"

namespace cistern {

bool Captured::holds(MempoolId_t pool) const {
  return pool_ == pool || std::any_of(parts_.begin(), parts_.end(), [&](const auto& part) {
           return static_cast<const Captured*>(part.get())->holds(pool);
         });
}

void Captured::keepForGood() noexcept {
  pins_ = {};
  for (const auto& part : parts_) static_cast<Captured*>(part.get())->keepForGood();
}

Captured::~Captured() {
  pools_.allocator().engine().unpin(pins_);
  if (counted_ && driverMayBeCalled()) pools_.letGoQuietly(pool_);
}

}  // namespace cistern
