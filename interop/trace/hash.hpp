// A hash for the addresses and stream names that trace files hold. Seeded once a process, so that
// no file can be written whose keys all fall into one bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>

namespace cistern::trace {

struct SeededHash {
  std::size_t operator()(std::uint64_t key) const noexcept {
    static const std::uint64_t seed = (std::uint64_t{std::random_device{}()} << 32) | 1;
    std::uint64_t mixed = (key ^ seed) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 32)) * (seed | 0xd6e8feb9u);
    return static_cast<std::size_t>(mixed ^ (mixed >> 29));
  }
};

struct SeededPairHash {
  std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& pair) const noexcept {
    const SeededHash hash;
    return hash(pair.first * 0x9e3779b97f4a7c15u + hash(pair.second));
  }
};

}  // namespace cistern::trace
