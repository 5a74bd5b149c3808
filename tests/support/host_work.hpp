// Test work on the host backend, which it opens by name.
#pragma once

#include <memory>

#include "tests/support/device_work.hpp"
#include "tests/support/host_device.hpp"

namespace cistern::test {

class HostWork final : public DeviceWork {
 public:
  HostWork();

  Device& device() override { return *device_; }

  void fill(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) override;
  void verify(Stream stream, Address address, std::size_t bytes, std::uint32_t seed) override;
  std::uint64_t mismatches() override;
  /// Until the host waits for it.
  void delay(Stream stream, std::uint64_t nanoseconds) override;

 private:
  HostDevice& host() { return static_cast<HostDevice&>(*device_); }

  std::uint64_t wrong_words_ = 0;  // work writes it under the device's lock
  std::unique_ptr<Device> device_;
};

}  // namespace cistern::test
