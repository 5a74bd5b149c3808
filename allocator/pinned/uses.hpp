// The streams that use each block, and the end of each use. Streams of several devices may use one
// block. Each device has known streams and pending frees of its own, which are the engine's
// (allocator/engine/events).
//
// A block has one record for each device on whose streams it is used. The pending frees of that
// device take the record for a block. A pending block is free when it has no record left.
//
//   allocated: its records wait for nothing     pending: each waits in its device's pending frees
//
// Locks: the owner's serialises changes of a block's records. Devices are called without it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "allocator/base/mutex.hpp"
#include "allocator/base/recycled.hpp"
#include "allocator/engine/events/pending_frees.hpp"
#include "allocator/layout/block.hpp"

namespace cistern {

class PinnedUses {
 public:
  struct OnDevice;
  /// The uses of one block on the streams of one device. `Block::next` is the block's next record,
  /// or links spare ones.
  struct Use : Block {
    Block* block = nullptr;
    OnDevice* on = nullptr;
    StreamUses streams;
  };
  using Budget = PendingFrees::Budget;

  /// `over` is called for each use that has ended. It may take the owner's lock.
  explicit PinnedUses(std::function<void(Use&)> over) : over_(std::move(over)) {}
  ~PinnedUses();
  PinnedUses(const PinnedUses&) = delete;
  PinnedUses& operator=(const PinnedUses&) = delete;

  // ---- Under the owner's lock

  /// An allocated block has none yet.
  static void begin(Block& block) noexcept { block.use.uses = nullptr; }
  static bool any(const Block& block) noexcept { return block.use.uses != nullptr; }
  /// Notes that a stream which that device has met uses the block; no-op for a use that is known.
  /// Throws std::bad_alloc, changing nothing.
  void add(Block& block, OnDevice& on, Stream stream);
  /// Removes a use that has ended. Returns the block if that was its last use; else null.
  Block* remove(Use& use) noexcept;
  /// How many uses the block has. Aborts on a broken invariant.
  static std::size_t audit(const Block& block);

  // ---- Without it

  /// A verb names the stream. Throws InvalidArgument for one that is not alive, DeviceFailure,
  /// std::bad_alloc.
  OnDevice& meet(Stream stream, Device& device);
  /// Does what PinnedAllocator::forgetStream promises.
  void forget(Stream stream, Device& device);
  /// The block has become pending: its uses end with the work queued by now. They may end at once.
  void end(Block& block) noexcept;
  /// Finds uses that have ended, on each device within the budget. Waits for nothing.
  void poll(Budget most) noexcept;
  /// Waits for queued work until a use has ended. False if no use can be waited for.
  bool wait() noexcept;
  /// Waits only for those devices whose uses no smaller wait can confirm. False without such
  /// devices.
  bool waitForStuck() noexcept;
  /// The number of waiting records; a hint while other threads change it.
  std::size_t waiting() const noexcept;
  /// The number of records that have waited and wait no more.
  std::uint64_t ended() const noexcept;
  std::size_t hostBytes() const { return uses_.size() * sizeof(Use); }

 private:
  static Use* first(const Block& block) noexcept { return static_cast<Use*>(block.use.uses); }
  OnDevice* find(const Device& device) const noexcept;
  OnDevice& findOrMake(Device& device);

  const std::function<void(Use&)> over_;
  Recycled<Use> uses_;
  Mutex making_{LockRank::kPinnedDevices};
  Mutex waiting_{LockRank::kPinnedWaiting};
  /// The last one made, which links to the others. None goes before this object.
  std::atomic<OnDevice*> devices_{nullptr};
};

/// The streams of one device, and the pending frees that wait for them.
struct PinnedUses::OnDevice {
  OnDevice(Device& of, const std::function<void(Use&)>& over)
      : device(of), pending(of, events, streams, [&over](const PendingFrees::Pending& one) {
          over(static_cast<Use&>(*one.block));
        }) {}

  Device& device;
  SpareEvents events{device};
  KnownStreams streams{device, events, [](Stream, bool) {}};
  PendingFrees pending;
  std::unique_ptr<OnDevice> next;
};

}  // namespace cistern
