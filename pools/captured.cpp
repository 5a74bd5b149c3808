#include "pools/captured.hpp"

#include <algorithm>

#include "allocator/base/process.hpp"
#include "allocator/engine/engine.hpp"
#include "pools/pool_registry.hpp"

namespace cistern {

bool Captured::holds(MempoolId_t pool) const {
  return pool_ == pool || std::ranges::any_of(pins_.graphs, [&](const auto& part) {
           return static_cast<const Captured*>(part.get())->holds(pool);
         });
}

void Captured::keepForGood() noexcept {
  for (const auto& part : pins_.graphs) static_cast<Captured*>(part.get())->keepForGood();
  pins_ = {};
}

Captured::~Captured() {
  pools_.allocator().engine().unpin(pins_);
  if (counted_ && driverMayBeCalled()) pools_.letGoQuietly(pool_);
}

}  // namespace cistern
