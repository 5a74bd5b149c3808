// A pinned allocator on a simulated device, whose blocks the host writes and copies read: each copy
// looks at the host's bytes when it is complete, so that a block that was reused too early is found
// out.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "allocator/device/sim/host_clock.hpp"
#include "cistern/pinned.hpp"
#include "cistern/sim.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/device_work.hpp"
#include "tests/support/forwarding_device.hpp"

namespace cistern::test {

inline constexpr std::uint64_t kLateNs = 100'000'000;

/// What both rigs do with their copies.
template <class Rig>
class PinnedVerbs {
 public:
  /// A block that a late copy on the stream uses, freed.
  template <class Seed = std::uint32_t>
  void* freedInUse(Stream on, std::size_t bytes, Seed seed = 1) {
    Rig& rig = static_cast<Rig&>(*this);
    void* const block = rig.pinned.allocate(bytes);
    Rig::write(block, bytes, seed);
    rig.copy(on, block, bytes, seed);
    rig.pinned.recordStream(block, on);
    rig.pinned.free(block);
    return block;
  }
  std::int64_t reserved() const { return self().pinned.stats().reserved_bytes.current; }
  std::int64_t active() const { return self().pinned.stats().active.current; }
  /// Calls that wait for work.
  std::uint64_t waits() const {
    return self().calls(Call::kSynchronizeStream) + self().calls(Call::kSynchronizeEvent) +
           self().calls(Call::kSynchronizeDevice);
  }

 private:
  const Rig& self() const { return static_cast<const Rig&>(*this); }
};

struct PinnedRig : PinnedVerbs<PinnedRig> {
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
  std::uint64_t calls(Call call) const { return device->callCounts()[std::size_t(call)]; }

  std::unique_ptr<sim::SimulatedDevice> device;
  std::atomic<std::uint64_t> wrong{0};  ///< copies that found other bytes
  PinnedAllocator pinned{*device};
};

/// A device whose calls are counted.
class CountedDevice final : public ForwardingDevice<CountedDevice> {
 public:
  using ForwardingDevice::ForwardingDevice;

  template <class Forward>
  auto through(Call call, Forward forward) {
    ++counts_[std::size_t(call)];
    return forward(behind_);
  }
  std::uint64_t count(Call call) const { return counts_[std::size_t(call)]; }

 private:
  std::array<std::atomic<std::uint64_t>, kCallCount> counts_{};
};

/// A pinned allocator on any device. A late copy brings both ends of a block to the device, which
/// looks at them there.
class PinnedWorkRig : public PinnedVerbs<PinnedWorkRig> {
 public:
  explicit PinnedWorkRig(DeviceWork& queued) : work(queued) {
    target_ = device.malloc(kSlots * kSlotBytes).orThrow();
  }
  ~PinnedWorkRig() {
    CHECK(work.mismatches() == 0);
    pinned.audit();
    for (const Stream stream : streams_) {
      pinned.forgetStream(stream);
      (void)device.destroyStream(stream);
    }
    (void)device.free(target_);
  }
  PinnedWorkRig(const PinnedWorkRig&) = delete;
  PinnedWorkRig& operator=(const PinnedWorkRig&) = delete;

  Stream stream() { return streams_.emplace_back(device.createStream().orThrow()); }
  void sync(Stream of) { device.synchronizeStream(of).orThrow(); }
  /// Two words at both ends of the block, as DeviceWork's patterns are.
  static void write(void* block, std::size_t bytes, std::uint32_t seed) {
    const std::uint32_t words[] = {seed, seed + 1};
    static_assert(sizeof words == kEnd);
    std::memcpy(block, words, kEnd);
    std::memcpy(static_cast<std::byte*>(block) + bytes - kEnd, words, kEnd);
  }
  void copy(Stream on, void* block, std::size_t bytes, std::uint32_t seed,
            std::uint64_t lasting = kLateNs) {
    const Address slot = target_ + next_++ % kSlots * kSlotBytes;
    const BusCopy ends[] = {{slot, block, kEnd},
                            {slot + kEnd, static_cast<std::byte*>(block) + bytes - kEnd, kEnd}};
    if (lasting > 0) work.delay(on, lasting);
    device.copyIn(ends, 2, on).orThrow();
    work.verify(on, slot, kEnd, seed);
    work.verify(on, slot + kEnd, kEnd, seed);
  }
  /// Queues the writing of the block's ends by the device.
  void copyBack(Stream on, void* block, std::size_t bytes, std::uint32_t seed,
                std::uint64_t lasting) {
    const Address slot = target_ + next_++ % kSlots * kSlotBytes;
    const BusCopy ends[] = {{slot, block, kEnd},
                            {slot + kEnd, static_cast<std::byte*>(block) + bytes - kEnd, kEnd}};
    work.fill(on, slot, kEnd, seed);
    work.fill(on, slot + kEnd, kEnd, seed);
    if (lasting > 0) work.delay(on, lasting);
    device.copyOut(ends, 2, on).orThrow();
  }
  std::uint64_t calls(Call call) const { return device.count(call); }

  DeviceWork& work;
  CountedDevice device{work.device()};
  PinnedAllocator pinned{device};

 private:
  static constexpr std::size_t kEnd = 8, kSlotBytes = 2 * kEnd, kSlots = 65'536;

  std::vector<Stream> streams_;
  Address target_ = 0;
  std::atomic<std::size_t> next_{0};
};

/// Runs `test` with a rig on every device that is present.
template <class Test>
void onEachPinnedRig(Test test) {
  forEachBackend([&](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    PinnedWorkRig rig(work);
    test(rig);
  });
}

}  // namespace cistern::test
