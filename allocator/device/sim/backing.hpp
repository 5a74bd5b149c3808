// The bytes behind simulated memory: host memory that comes into being when it is first touched, so
// that a simulated device of 80 GiB fits on a small machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cistern::sim {

/// One physical allocation: a page's, or that of one malloc. Shared by whoever may still touch it.
/// Not thread-safe: used under the simulated device's lock.
class Backing {
 public:
  /// `id` is unique in the device and never used again.
  Backing(std::uint64_t id, std::uint64_t bytes) : id_(id), bytes_(bytes) {}
  ~Backing();
  Backing(const Backing&) = delete;
  Backing& operator=(const Backing&) = delete;

  std::uint64_t id() const { return id_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Its first byte; zeroes until written.
  std::byte* data();

 private:
  std::uint64_t id_;
  std::uint64_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace cistern::sim
