// What `cistern doctor` finds out, before anything of it is printed.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "cistern/device.hpp"
#include "interop/command/environment.hpp"

namespace cistern::command {

struct Finding {
  std::string what;      ///< "memory that is freed is used again"
  bool skipped = false;  ///< the device lacks what the test needs
  std::string problem;   ///< empty: it holds
};

/// Tests whether Cistern keeps its promises on a device. Each test makes a few calls that a broken
/// driver, or an unusual device, would fail. Takes up to 256 MiB of the device for a moment, and a
/// stream.
std::vector<Finding> selfTest(Device& device);

struct DeviceFindings {
  std::string backend;
  int ordinal = 0;
  std::string name;
  MemoryInfo memory;           ///< in bytes; 0 when the device does not tell
  std::string memory_problem;  ///< why it does not; empty when it does
  VirtualMemoryCapability pages;
  std::vector<int> peers;           ///< ordinals of the devices whose memory it can reach
  bool can_share_segments = false;  ///< by the driver's own handles
  std::vector<Finding> tests;
};

struct BackendFindings {
  std::string name;
  std::vector<DeviceFindings> devices;
  std::string missing;  ///< why it has no device here; empty when it has
  std::string runtime;  ///< the version and the file of the vendor's runtime; empty without one
};

struct Examination {
  std::optional<std::string> kernel_module;  ///< what NVIDIA's says of itself
  std::vector<Setting> environment;
  std::vector<BackendFindings> backends;
  std::string run_library;  ///< the library of `cistern run`; empty when it is missing
  std::string run_problem;  ///< why it is missing

  bool anyDevice() const;
  /// A device is here, every test holds, and every variable of the environment can be used.
  bool ok() const;
};

/// Examines the devices of one backend; if that is empty, those of each vendor. Takes up to 256 MiB
/// of each device for a moment.
Examination examineMachine(const std::string& backend);

void printAsText(const Examination& examination, std::ostream& out);
/// One object: docs/run.md lists its keys.
void printAsJson(const Examination& examination, std::ostream& out);

}  // namespace cistern::command
