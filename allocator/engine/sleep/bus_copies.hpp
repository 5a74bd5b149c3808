// Copies between the device and the host, on streams of their own: two, so that one begins a copy
// while the other ends one.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

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

  /// Queues a copy. No later one of the same BusCopies need wait for it.
  Status out(void* to, Address from, std::size_t bytes);
  Status in(Address to, const void* from, std::size_t bytes);
  Status clear(Address at, std::size_t bytes);
  /// Waits for all of them.
  Status finish();

 private:
  Result<Stream> next();

  Device& device_;
  std::array<std::optional<Stream>, 2> streams_;
  std::size_t turn_ = 0;
};

}  // namespace cistern
