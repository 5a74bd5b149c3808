#include "pools/captured.hpp"

#include <algorithm>

#include "allocator/base/process.hpp"
#include "allocator/engine/engine.hpp"
#include "pools/pool_registry.hpp"

namespace cistern {

bool Captured::holds(MempoolId_t pool) const {
  return pool_ == pool || std::ranges::any_of(footprint_.graphs, [&](const auto& part) {
           return static_cast<const Captured*>(part.get())->holds(pool);
         });
}

void Captured::keepForGood() noexcept {
  for (const auto& part : footprint_.graphs) static_cast<Captured*>(part.get())->keepForGood();
  footprint_ = {};
}

Captured::~Captured() {
  pools_.allocator().engine().unbind(footprint_);
  if (counted_ && driverMayBeCalled()) pools_.letGoQuietly(pool_);
}

}  // namespace cistern
