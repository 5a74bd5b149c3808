// The addresses of one simulated device. No other living one of the process has any of them, so an
// address tells whose it is. Lock-free, as devices are made and destroyed in children of fork too.
#pragma once

#include <cstdint>

#include "cistern/types.hpp"

namespace cistern::sim {

class AddressSpace {
 public:
  static constexpr std::uint64_t kBytes = 128 * kTiB;  ///< 47 bits of address
  /// Living devices of one ordinal. All spaces together are the 57 bits that a SegmentMap knows.
  static constexpr unsigned kPerOrdinal = 128;

  /// The lowest space of that ordinal that no living device has. So the first device has the same
  /// addresses in each run. Throws Error when kPerOrdinal devices have them all. Pre: 0 to 7.
  explicit AddressSpace(int ordinal);
  ~AddressSpace() { leave(); }
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  /// Another device may have the space from now on. Does nothing the second time.
  void leave() noexcept;

  /// Of all living devices only this one has it. Below 2^10; the ordinal for a first device.
  std::uint64_t number() const { return number_; }
  Address begin() const { return number_ * kBytes; }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::uint64_t number_ = kNone;
};

}  // namespace cistern::sim
