// Test work on a simulated device: each piece declares what it touches, and does it.
#pragma once

#include <memory>

#include "allocator/device/sim/sim_device.hpp"
#include "tests/support/device_work.hpp"

namespace cistern::test {

class SimWork final : public DeviceWork {
 public:
  explicit SimWork(sim::SimConfig config = {}) : device_(std::move(config)) {}

  Device& device() override { return device_; }
  sim::SimDevice& sim() { return device_; }

  void fill(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) override;
  void verify(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) override;
  std::uint64_t mismatches() override;
  void delay(Stream stream, std::uint64_t nanoseconds) override;

 private:
  std::uint64_t wrong_words_ = 0;  // effects write it under the device's lock
  sim::SimDevice device_;
};

std::unique_ptr<DeviceWork> simWork();

}  // namespace cistern::test
