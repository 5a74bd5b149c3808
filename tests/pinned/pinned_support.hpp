// A pinned allocator on a simulated device, whose blocks the host writes and copies read: each copy
// looks at the host's bytes when it is complete, so that a block that was reused too early is found
// out.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

#include "allocator/device/sim/host_clock.hpp"
#include "cistern/pinned.hpp"
#include "cistern/sim.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {

inline constexpr std::uint64_t kLateNs = 100'000'000;

struct PinnedRig {
  explicit PinnedRig(const sim::SimConfig& config = {}) : device(sim::makeDevice(config)) {}
  ~PinnedRig() {
    (void)device->synchronizeDevice();
    pinned.audit();
    CHECK(wrong == 0);
  }
  PinnedRig(const PinnedRig&) = delete;
  PinnedRig& operator=(const PinnedRig&) = delete;

  Stream stream() { return device->createStream().orThrow(); }
  void sync(Stream of) { device->synchronizeStream(of).orThrow(); }
  /// Writes words of `seed` at both ends of the block.
  static void write(void* block, std::size_t bytes, std::uint64_t seed) {
    std::memcpy(block, &seed, sizeof seed);
    std::memcpy(static_cast<std::byte*>(block) + bytes - sizeof seed, &seed, sizeof seed);
  }
  /// Queues a copy from the block that lasts so long, and finds out whether the host has written
  /// anything else there before it is complete.
  void copy(Stream on, const void* block, std::size_t bytes, std::uint64_t seed,
            std::uint64_t lasting = kLateNs) {
    const auto* const first = static_cast<const std::byte*>(block);
    const auto effect = [this, first, bytes, seed](sim::MemoryView&) {
      std::uint64_t ends[2];
      std::memcpy(&ends[0], first, sizeof ends[0]);
      std::memcpy(&ends[1], first + bytes - sizeof ends[1], sizeof ends[1]);
      if (ends[0] != seed || ends[1] != seed) ++wrong;
    };
    device->launch(on, {"copy", {}, lasting, effect}).orThrow();
  }
  /// A block that a late copy on the stream uses, freed.
  void* freedInUse(Stream on, std::size_t bytes, std::uint64_t seed = 1) {
    void* const block = pinned.allocate(bytes);
    write(block, bytes, seed);
    copy(on, block, bytes, seed);
    pinned.recordStream(block, on);
    pinned.free(block);
    return block;
  }
  std::int64_t reserved() const { return pinned.stats().reserved_bytes.current; }
  std::int64_t active() const { return pinned.stats().active.current; }
  std::uint64_t calls(Call call) const { return device->callCounts()[std::size_t(call)]; }
  /// Calls that wait for work.
  std::uint64_t waits() const {
    return calls(Call::kSynchronizeStream) + calls(Call::kSynchronizeEvent) +
           calls(Call::kSynchronizeDevice);
  }

  std::unique_ptr<sim::SimulatedDevice> device;
  std::atomic<std::uint64_t> wrong{0};  ///< copies that found other bytes
  PinnedAllocator pinned{*device};
};

}  // namespace cistern::test
