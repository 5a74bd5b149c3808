// The bytes behind simulated memory: host memory that is made at the first touch. So a simulated
// device of 80 GiB fits on a small machine. Exported memory lies in a file of the kernel's, which
// every holder of its descriptor maps too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cistern/device.hpp"

namespace cistern::sim {

/// One physical allocation: a page's, or that of one malloc. Shared by all that may still touch it.
/// Not thread-safe: used under the simulated device's lock.
class Backing {
 public:
  /// `id` is unique in the device and never used again.
  Backing(std::uint64_t id, std::uint64_t bytes, Location location = Location::kDevice)
      : id_(id), bytes_(bytes), location_(location) {}
  /// The memory behind a descriptor. The descriptor is this object's from now on.
  Backing(std::uint64_t id, std::uint64_t bytes, int file) : id_(id), bytes_(bytes), file_(file) {}
  ~Backing();
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;

  std::uint64_t id() const { return id_; }
  std::uint64_t bytes() const { return bytes_; }
  bool isHost() const { return location_ == Location::kHost; }
  /// Its first byte; zeroes until written.
  std::byte* data();
  /// A descriptor of the memory, the caller's to close; -1 when the kernel has none to give.
  int share();

  /// How many bytes lie behind a descriptor from share(); 0 for any other.
  static std::uint64_t bytesBehind(int descriptor);

  /// A name by which this user's processes find the memory while the object lives; none when the
  /// kernel has no file to give.
  std::optional<FabricHandle> name();
  /// A descriptor of the memory with that name, the caller's to close; -1 when it is gone.
  static int open(const FabricHandle& name);

 private:
  bool moveToFile();

  std::uint64_t id_;
  std::uint64_t bytes_;
  Location location_ = Location::kDevice;
  int file_ = -1;
  std::byte* data_ = nullptr;
};

}  // namespace cistern::sim
