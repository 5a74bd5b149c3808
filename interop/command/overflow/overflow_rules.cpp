// The list of rules.
#include <array>

#include "interop/command/overflow/overflow_policy.hpp"

namespace cistern::command {
namespace {

constexpr std::array<OverflowRule, 1> kRules = {{
    {"overflow", "a block for which the device has no room lies in host memory", makeAsTheyCome},
}};

}  // namespace

std::span<const OverflowRule> overflowRules() { return kRules; }

}  // namespace cistern::command
