// Policy "cistern": the caching allocator as its user has configured it.
#include "interop/command/replay/engine_policy.hpp"

namespace cistern::command {

std::unique_ptr<Policy> makeCistern(Device& device, const PolicySettings& settings) {
  return std::make_unique<EnginePolicy>(device, settings.options, settings.capacity);
}

}  // namespace cistern::command
