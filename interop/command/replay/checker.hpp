// --check: every block is written by queued work when it is given out and read by queued work when
// it is freed, under the simulated device's race detector. A block that was handed to someone else
// while its last user may still be running is then a race.
#pragma once

#include <string>

#include "allocator/device/sim/sim_device.hpp"
#include "interop/command/replay/policy.hpp"

namespace cistern::command {

class Checker {
 public:
  /// Pre: the device's race detector is on.
  explicit Checker(sim::SimDevice& device) : device_(device) {}

  void allocated(const Held& block) { touch("first write", block, sim::AccessKind::kWrite); }
  void freeing(const Held& block) { touch("last read", block, sim::AccessKind::kRead); }

  /// What was found, the first of it in words; empty when all is well.
  std::string verdict() const;

 private:
  void touch(const char* name, const Held& block, sim::AccessKind kind);

  sim::SimDevice& device_;
};

}  // namespace cistern::command
