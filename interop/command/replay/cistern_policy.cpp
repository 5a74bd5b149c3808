// Policy "cistern": the caching allocator as its user has configured it.
#include "allocator/device/backends.hpp"
#include "interop/command/replay/engine_policy.hpp"

namespace cistern::command {

std::unique_ptr<Policy> makeCistern(Device& device, const PolicySettings& settings) {
  Options options = settings.options;
  // The simulated clock does not wait for a thread. So the thread's progress would depend on the
  // scheduler, and no two replays would be the same. Without the thread, the next miss does its
  // work, still on the background's account.
  if (isSimulated(device.backend())) options.background_thread = false;
  return std::make_unique<EnginePolicy>(device, options, settings.capacity);
}

}  // namespace cistern::command
