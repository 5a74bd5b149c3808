// Policy "cistern": the caching allocator as its user has configured it.
#include "interop/command/replay/engine_policy.hpp"

namespace cistern::command {

std::unique_ptr<Policy> makeCistern(Device& device, const PolicySettings& settings) {
  Options options = settings.options;
  // The simulated clock does not wait for a thread, so how far that thread has come would be up to
  // the scheduler, and no two replays the same. Without it the next miss does its work, on the
  // background's account all the same.
  if (device.backend() == "sim") options.background_thread = false;
  return std::make_unique<EnginePolicy>(device, options, settings.capacity);
}

}  // namespace cistern::command
