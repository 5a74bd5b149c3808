// Copies between the device and the host, on a stream of their own.
#pragma once

#include <optional>
#include <span>

#include "cistern/device.hpp"

namespace cistern {

/// Not thread-safe. Makes no call before there is something to copy.
class BusCopies {
 public:
  explicit BusCopies(Device& device) : device_(device) {}
  // A stream that is destroyed early still completes its work, which the caller has not waited for:
  // so the device does.
  ~BusCopies() {
    if (!finish() && !finish()) (void)device_.synchronizeDevice();
    if (stream_ && !device_.destroyStream(*stream_)) (void)device_.destroyStream(*stream_);
  }
  BusCopies(const BusCopies&) = delete;
  BusCopies& operator=(const BusCopies&) = delete;

  /// Queues the copies, in one call.
  Status out(std::span<const BusCopy> copies) {
    return queue(!copies.empty(),
                 [&](Stream on) { return device_.copyOut(copies.data(), copies.size(), on); });
  }
  Status in(std::span<const BusCopy> copies) {
    return queue(!copies.empty(),
                 [&](Stream on) { return device_.copyIn(copies.data(), copies.size(), on); });
  }
  Status clear(Address at, std::size_t bytes) {
    return queue(true, [&](Stream on) { return device_.clear(at, bytes, on); });
  }
  /// Waits for all of them.
  Status finish() { return stream_ ? device_.synchronizeStream(*stream_) : Status(); }

 private:
  template <class Call>
  Status queue(bool any, Call call) {
    if (!any) return {};
    if (!stream_) {
      const Result<Stream> made = device_.createStream();
      if (!made) return made.error();
      stream_ = made.value();
    }
    return call(*stream_);
  }

  Device& device_;
  std::optional<Stream> stream_;
};

}  // namespace cistern
