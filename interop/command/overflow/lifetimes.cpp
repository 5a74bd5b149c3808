#include "interop/command/overflow/lifetimes.hpp"

namespace cistern::command {
namespace {

// The memory of a block that other streams still use is not free yet.
bool endsBlock(StepKind kind) { return kind == StepKind::kFree || kind == StepKind::kUsesEnd; }

}  // namespace

std::vector<Lifetime> lifetimesOf(const Script& script) {
  std::vector<Lifetime> lives;
  std::vector<std::size_t> in_slot(script.slots);
  for (std::size_t event = 0; event < script.steps.size(); ++event) {
    const Step& step = script.steps[event];
    if (step.kind == StepKind::kAllocate) {
      in_slot[step.slot] = lives.size();
      lives.push_back({step.bytes, event, script.steps.size()});
    } else if (endsBlock(step.kind)) {
      lives[in_slot[step.slot]].ended = event;
    }
  }
  std::erase_if(lives, [](const Lifetime& life) { return life.bytes == 0; });
  return lives;
}

std::vector<std::uint64_t> livingBytes(const Script& script) {
  std::vector<std::uint64_t> living;
  living.reserve(script.steps.size());
  std::vector<std::uint64_t> in_slot(script.slots);
  std::uint64_t now = 0;
  for (const Step& step : script.steps) {
    if (step.kind == StepKind::kAllocate) now += in_slot[step.slot] = step.bytes;
    if (endsBlock(step.kind)) now -= in_slot[step.slot];
    living.push_back(now);
  }
  return living;
}

}  // namespace cistern::command
