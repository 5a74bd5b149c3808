// A way to place a program's blocks once the device is full. Each rule is one file, and
// overflow_rules.cpp lists them. Read next: bus_meter.hpp, which counts what a rule costs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "cistern/device.hpp"
#include "cistern/options.hpp"
#include "interop/command/replay/policy.hpp"

namespace cistern::command {

/// A policy some of whose blocks may lie in host memory.
class OverflowPolicy : public Policy {
 public:
  /// The bytes of a block that lie in host memory now. Pre: allocate gave it out, and it is not
  /// null.
  virtual std::uint64_t hostBytesIn(const void* block) const = 0;
  /// Called between two iterations: moves blocks between the device and the host. Returns the bytes
  /// that it moved.
  virtual std::uint64_t settle() { return 0; }
};

/// One row of the list of rules.
struct OverflowRule {
  std::string_view name;
  std::string_view text;  ///< for people
  /// Throws Error if the device or the options have no host pages.
  std::unique_ptr<OverflowPolicy> (*make)(Device& device, const Options& options);
};

std::span<const OverflowRule> overflowRules();

// allocator_rules.cpp
std::unique_ptr<OverflowPolicy> makeAsTheyCome(Device& device, const Options& options);

}  // namespace cistern::command
