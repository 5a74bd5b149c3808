// A device and the streams that a benchmark uses on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cistern/device.hpp"

namespace cistern::bench {

class BenchDevice {
 public:
  explicit BenchDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  Device& device() { return *device_; }

  /// Streams live as long as the device: a cache may hold blocks that are ordered by them.
  Stream stream(std::size_t index) {
    while (streams_.size() <= index) streams_.push_back(device_->createStream().orThrow());
    return streams_[index];
  }

  /// What a case may take. A tenth stays for what allocators round up to.
  std::uint64_t roomBytes() { return device_->memoryInfo().orThrow().free_bytes / 10 * 9; }

 private:
  std::unique_ptr<Device> device_;
  std::vector<Stream> streams_;
};

}  // namespace cistern::bench
