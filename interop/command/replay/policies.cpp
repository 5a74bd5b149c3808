// The list of policies.
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/command/console.hpp"
#include "interop/command/did_you_mean.hpp"
#include "interop/command/replay/policy.hpp"
#include "interop/command/replay/replay_report.hpp"

namespace cistern::command {
namespace {

constexpr std::string_view kTorchRules = "torch-rules";

std::string lacksNothing(const Device&) { return {}; }

std::string virtualMemoryLacks(const Device& device) {
  if (device.virtualMemory().supported) return {};
  return fmt::format("a model of another allocator needs virtual memory, and the {} ({}) has none",
                     device.name(), device.backend());
}

constexpr std::array<PolicyKind, 6> kPolicies = {{
    {"cistern", "Cistern", "Cistern's allocator, with the options of --conf", true, true, true,
     makeCistern, lacksNothing},
    {kTorchRules, "PyTorch's rules", "Cistern's engine under PyTorch's rules, not PyTorch", true,
     true, false, makeTorch, lacksNothing},
    {"torch-expandable", "PyTorch, expandable (model)",
     "a model of PyTorch with expandable segments", true, true, false, makeTorchExpandable,
     virtualMemoryLacks},
    {"driver-pool", "driver's pool (model)", "a model of the driver's stream-ordered pool", false,
     true, false, makeDriverPool, virtualMemoryLacks},
    {"direct", "no allocator", "no allocator: a device malloc and free each time", true, false,
     false, makeDirect, lacksNothing},
    {"async", "driver's own pool", "the driver's own stream-ordered pool", false, true, false,
     makeAsync, asyncLacks},
}};

}  // namespace

std::optional<std::string> confOf(const ReplaySettings& settings, std::string_view policy) {
  if (!policyKind(policy).reads_options) return std::nullopt;
  return settings.options.conf();
}

std::span<const PolicyKind> policyKinds() { return kPolicies; }

std::string policyHelp(std::string begin) {
  for (const PolicyKind& kind : kPolicies) begin += fmt::format("\n{}: {}", kind.name, kind.text);
  return begin;
}

const PolicyKind& policyKind(std::string_view name) {
  std::vector<std::string_view> names;
  for (const PolicyKind& kind : kPolicies) {
    if (kind.name == name) return kind;
    names.push_back(kind.name);
  }
  throw UsageError(fmt::format("unknown policy '{}': must be one of {}{}", name,
                               fmt::join(names, ", "), didYouMean(name, names)));
}

}  // namespace cistern::command
