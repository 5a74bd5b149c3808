// What the threads share for a round of a few seconds: a simulated device, an allocator on it, its
// pools, streams that come and go, and blocks on their way from one thread to another.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <shared_mutex>
#include <string>
#include <vector>

#include "allocator/device/sim/sim_device.hpp"
#include "cistern/allocator.hpp"
#include "cistern/pool.hpp"
#include "tests/stress/ownership.hpp"
#include "tests/support/mirrored_device.hpp"

namespace cistern::stress {

/// Says what is wrong and ends the program.
[[noreturn]] void violation(const std::string& what);

/// What has been done, by all threads.
struct Counts {
  std::atomic<std::uint64_t> rounds{0}, threads{0}, steps{0}, allocations{0}, refused{0},
      passed_on{0}, recorded{0}, streams{0}, pools{0}, emptied{0}, audits{0}, trainings{0};
};

/// One stream of the program. Who uses it holds the lock shared; who replaces it, alone.
struct StreamSlot {
  std::shared_mutex mutex;
  Stream stream;
  std::uint64_t generation = 0;
};

/// A block that the program has.
struct Held {
  void* block;
  std::uint64_t bytes;
  std::size_t slot;
  std::uint64_t generation;  ///< of the slot: another means that the block's stream is gone
};

class World {
 public:
  /// Device and options follow from the seed.
  World(std::uint64_t seed, std::size_t streams, Counts& counts);
  /// Everything must have been given back by now.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// A block for the program, or null when there is no memory for it.
  Held* allocate(std::size_t bytes, std::size_t slot, bool touch);
  void free(Held* held);
  /// Another stream reads the block, in order, and the allocator is told so.
  void useElsewhere(const Held& held, std::size_t slot);
  /// Forgets and destroys the slot's stream, and makes another, unless somebody uses it now.
  void replaceStream(std::size_t slot);
  /// Leaves the block for another thread. What lay in that place is the caller's, or null.
  Held* passOn(Held* held, std::size_t place) {
    return mail_[place % mail_.size()].exchange(held, std::memory_order_acq_rel);
  }
  void checkStatistics();

  sim::SimDevice device;
  test::MirroredDevice mirror{device};
  CachingAllocator allocator;
  Pools pools;
  Counts& counts;
  std::vector<StreamSlot> slots;

 private:
  void work(Stream stream, const Held& held, sim::AccessKind kind);

  HookId hook_;  ///< of the mirror, for some seeds
  Ownership ownership_;
  std::array<std::atomic<Held*>, 64> mail_{};
};

}  // namespace cistern::stress
