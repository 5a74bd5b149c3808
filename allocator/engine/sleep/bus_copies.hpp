// Copies between the device and the host, on a stream of their own.
#pragma once

#include <optional>
#include <span>

#include "cistern/device.hpp"

namespace cistern {

/// Not thread-safe. The destructor waits for the copies.
class BusCopies {
 public:
  /// Makes no call yet.
  explicit BusCopies(Device& device) : device_(device) {}
  ~BusCopies();
  BusCopies(const BusCopies&) = delete;
  BusCopies& operator=(const BusCopies&) = delete;

  /// Queues the copies, in one call.
  Status out(std::span<const BusCopy> copies);
  Status in(std::span<const BusCopy> copies);
  Status clear(Address at, std::size_t bytes);
  /// Waits for all of them.
  Status finish();

 private:
  Result<Stream> stream();

  Device& device_;
  std::optional<Stream> stream_;
};

}  // namespace cistern
