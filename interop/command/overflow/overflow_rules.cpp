// The list of rules.
#include <array>

#include "interop/command/overflow/overflow_policy.hpp"

namespace cistern::command {
namespace {

constexpr std::array<OverflowRule, 1> kRules = {{
    {"late", "a block for which the device has no room lies in a pool in host memory", makeLate},
}};

}  // namespace

std::span<const OverflowRule> overflowRules() { return kRules; }

}  // namespace cistern::command
