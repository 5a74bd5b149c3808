// The list of rules.
#include <array>

#include "interop/command/overflow/overflow_policy.hpp"

namespace cistern::command {
namespace {

constexpr std::array<OverflowRule, 2> kRules = {{
    {"overflow", "a block for which the device has no room lies in host memory", makeAsTheyCome},
    {"settle", "the same, and blocks that live on move between two steps", makeSettled},
}};

}  // namespace

std::span<const OverflowRule> overflowRules() { return kRules; }

}  // namespace cistern::command
