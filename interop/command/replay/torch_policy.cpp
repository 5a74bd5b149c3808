// Policy "torch-rules": the same engine held to what PyTorch's allocator does by default, so that a
// comparison measures the rules and nothing else. It takes no options.
#include "interop/command/replay/engine_policy.hpp"

namespace cistern::command {
namespace {

Options torchRules() {
  Options options;
  options.backing = Backing::kSegments;
  options.background_thread = false;                    // it has none
  options.cross_stream_reuse = CrossStreamReuse::kOff;  // free memory serves its own stream only
  options.prefer_old_segments = false;  // as the lowest address does, where drivers go downwards
  return options;
}

}  // namespace

std::unique_ptr<Policy> makeTorch(Device& device, const PolicySettings& settings) {
  return std::make_unique<EnginePolicy>(device, torchRules(), settings.capacity);
}

}  // namespace cistern::command
