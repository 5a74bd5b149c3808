// --check: queued work writes every block when it is given out, and reads it when it is freed. The
// simulated device's race detector watches. A block that was handed to another user while its last
// user may still be running is then a race.
#pragma once

#include <cstdint>
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

  /// How many were found; the detector keeps sim::RaceDetector::kMaxReports at most.
  std::uint64_t races() const { return device_.races().size(); }
  /// The findings, the first of them in words; empty when all is well.
  std::string verdict() const;

 private:
  void touch(const char* name, const Held& block, sim::AccessKind kind);

  sim::SimDevice& device_;
};

}  // namespace cistern::command
