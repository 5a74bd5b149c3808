// Which streams use which block, and when that is over. It knows no sizes and no lock:
// PinnedMemory, which owns one, serialises.
//
// A use has an event from its beginning on, so that a free, which cannot fail, has all that it
// takes. At the free the event is recorded, and the use joins those that wait on its stream, in
// order: a poll asks the oldest of each stream only. Nothing is recorded on a stream that is being
// captured, as the event would become a part of the graph: such a use waits without a record until
// a poll after the capture. Where the stream is gone without notice, only the device can tell when
// its work is complete.
//
//   held:     the block is allocated             waiting:  the block is pending
//   a block is ready  <=>  none of its uses is left
#pragma once

#include <cstdint>
#include <list>
#include <map>

#include "allocator/layout/block.hpp"
#include "cistern/device.hpp"

namespace cistern {

class PinnedUses {
 public:
  PinnedUses() = default;
  ~PinnedUses();
  PinnedUses(const PinnedUses&) = delete;
  PinnedUses& operator=(const PinnedUses&) = delete;

  /// An allocated block has none yet.
  static void begin(Block& block) noexcept { block.use.uses = nullptr; }
  static bool any(const Block& block) noexcept { return block.use.uses != nullptr; }

  /// The block is used on the stream; nothing where that is known. Throws what recordStream does.
  void add(Block& block, Stream stream, Device& device);
  /// What PinnedAllocator::forgetStream does.
  void forget(Stream stream, Device& device);
  /// The block has become pending: its uses end with the work that is queued by now.
  void end(Block& block) noexcept;

  /// Whether any block waits.
  bool waiting() const noexcept { return waiting_ != 0; }
  /// How many uses have waited, and wait no more.
  std::uint64_t over() const noexcept { return over_; }
  /// Calls ready(Block&) for each block that has become ready. Waits for nothing.
  template <class Ready>
  void poll(Ready ready) noexcept {
    while (Block* const block = pollOne()) ready(*block);
  }
  struct Point {
    Device* device = nullptr;  ///< null: none
    Event event;
  };
  /// The first event that blocks wait for on the `nth` of the streams that have one. To be waited
  /// for without the owner's lock: it may serve another use by then, which does no harm, and is not
  /// destroyed before this object is.
  Point oldest(std::size_t nth) const noexcept;
  /// Uses of streams that are gone without notice are over: their devices are idle. Pre: `idle`
  /// says of each device whether it is.
  template <class Idle>
  void endLost(Idle idle) noexcept {
    for (Queue& queue : queues_) {
      for (Use& use : queue.waiting) {
        if (use.state == State::kLost && idle(*queue.device)) use.state = State::kOver;
      }
    }
  }
  /// Aborts on a broken invariant.
  void audit() const;

 private:
  enum class State : std::uint8_t {
    kHeld,
    kUnrecorded,  ///< waits for its event to be recorded
    kRecorded,    ///< waits for its event; a held one, for the stream is gone
    kLost,        ///< waits for the device
    kOver,
  };
  struct Queue;
  struct Use {
    Block* block;
    Queue* queue;
    Use* next;  ///< of the block's
    Event event;
    State state;
    std::list<Use>::iterator self;
  };
  /// A stream that blocks are used on. One that was forgotten has no more uses to come: a stream
  /// that the driver gives its handle to is another.
  struct Queue {
    Device* device;
    Stream stream;
    bool gone = false;
    std::list<Use> held, waiting;  ///< waiting: oldest first
  };

  Queue* find(Stream stream, const Device& device) noexcept;
  Queue& queueOf(Stream stream, Device& device);
  void record(Use& use) noexcept;
  bool isOver(Use& use) noexcept;
  Block* pollOne() noexcept;
  /// The block, where that was its last use; else null.
  Block* finish(Use& use) noexcept;
  static Use* first(const Block& block) noexcept { return static_cast<Use*>(block.use.uses); }

  std::list<Queue> queues_;
  /// Uses that are over, each with its event, for the next of that device.
  std::map<Device*, std::list<Use>> spare_;
  std::size_t waiting_ = 0;  ///< uses, of all queues
  std::uint64_t over_ = 0;   ///< those that no longer wait
};

}  // namespace cistern
