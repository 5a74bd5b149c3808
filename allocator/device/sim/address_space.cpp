#include "allocator/device/sim/address_space.hpp"

#include <array>
#include <atomic>
#include <bit>

#include <fmt/format.h>

#include "allocator/base/check.hpp"
#include "allocator/device/sim/sim_backend.hpp"
#include "cistern/error.hpp"

namespace cistern::sim {
namespace {

constexpr unsigned kBits = 64;
using Taken = std::array<std::atomic<std::uint64_t>, AddressSpace::kPerOrdinal / kBits>;

/// A bit for each space of each ordinal: a living device has it.
constinit std::array<Taken, kDevices> spaces_taken{};

}  // namespace

AddressSpace::AddressSpace(int ordinal) {
  CISTERN_CHECK(ordinal >= 0 && ordinal < kDevices);
  Taken& taken = spaces_taken[std::size_t(ordinal)];
  for (unsigned first = 0; first < kPerOrdinal; first += kBits) {
    std::atomic<std::uint64_t>& word = taken[first / kBits];
    std::uint64_t there = word.load(std::memory_order_relaxed);
    while (there != ~std::uint64_t{0}) {
      const unsigned bit = unsigned(std::countr_one(there));
      if (!word.compare_exchange_weak(there, there | std::uint64_t{1} << bit)) continue;
      number_ = std::uint64_t{first + bit} * kDevices + std::uint64_t(ordinal);
      return;
    }
  }
  throw Error(
      fmt::format("{} simulated devices of ordinal {} are alive: there are no addresses for "
                  "another. Destroy one first, or take another ordinal (0 to {})",
                  kPerOrdinal, ordinal, kDevices - 1));
}

void AddressSpace::leave() noexcept {
  if (number_ == kNone) return;
  const std::uint64_t place = number_ / kDevices;
  spaces_taken[number_ % kDevices][place / kBits].fetch_and(~(std::uint64_t{1} << place % kBits));
  number_ = kNone;
}

}  // namespace cistern::sim
