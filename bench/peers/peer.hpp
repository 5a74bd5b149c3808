// What a benchmark asks of an allocator, and what it must know of one before it starts it. One file
// beside this one for each allocator; roster.hpp says which of them this machine has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "cistern/types.hpp"

namespace cistern::bench {

/// One allocator with a cache of its own. allocate() and free() are safe to call from any thread.
class Peer {
 public:
  virtual ~Peer() = default;
  /// Null when there is no room. Pre: bytes > 0.
  virtual void* allocate(std::size_t bytes, Stream stream) = 0;
  /// Pre: `block` is allocated, on `stream`.
  virtual void free(void* block, Stream stream) = 0;
  /// The stream of thread `index`, made at the first call for it. Not thread-safe. Host allocators
  /// have but one.
  virtual Stream stream(std::size_t index) { return (void)index, Stream{}; }
};

/// How peers are set against each other: Cistern against the best of each other family.
enum class Family : std::uint8_t { kCistern, kHost, kGpu };

/// What an allocator can hold.
struct Room {
  static constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes = kAny;
  std::uint64_t blocks = kAny;
  std::uint64_t largest = kAny;  ///< above it, no call is served without the system below
};

struct PeerEntry {
  std::string name;
  Family family = Family::kGpu;
  /// Roughly how many times slower a call is than one that a cache serves.
  std::size_t slow_factor = 1;
  Room room;
  std::function<std::unique_ptr<Peer>()> open;
};

}  // namespace cistern::bench
