// Memory that the program has freed while queued work may still use it: blocks that other streams
// use, and graphs that are replayed. Each waits for a fence: the streams that use it, with a
// position on each. When all are passed, the memory is released.
//
// The free records an event on each such stream: its position. Events of one stream are complete in
// their order. So a poll asks the oldest of each stream in which something waits, until one is not
// complete.
//
// Nothing is recorded on a stream that is being captured: the event would become part of the graph.
// Such a block is put off, and gets its event at a poll after the capture; so does one whose event
// could not be had. All that is put off on one stream gets one event: a later event is as safe. For
// a forgotten stream (known_streams.hpp) the event is its end.
//
// A poll may be bounded. Streams take turns, so that the next poll goes on where this one stops.
//
// A fence takes host memory for all its streams when it is made; adding it, polling and waiting
// take none. If the host has none for a block's fence, the block is among the unknown ones, which
// wait for the whole device. A use by a stream that was destroyed without notice waits for the
// whole device, too.
//
// Locks: mutex_ guards everything. Events are asked under it, but never recorded or waited for. No
// heap's lock is held meanwhile. Blocks are released outside of mutex_. A poll holds polling_ until
// what it has found is released. So a waiting thread does not give up while another is about to
// release blocks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "allocator/base/bounds.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/engine/events/known_streams.hpp"
#include "allocator/engine/events/spare_events.hpp"
#include "allocator/engine/events/stream_uses.hpp"
#include "cistern/device.hpp"

namespace cistern {

class PendingFrees {
 public:
  /// What waits: a block that has become pending in its heap, now owned here until released, or
  /// anything else that is kept for so long.
  struct Pending {
    Block* block = nullptr;
    bool all = false;       ///< it waits for all known streams
    bool captured = false;  ///< a capture that is under way may have had the memory
    std::shared_ptr<void> kept{};
  };
  class Fence;

  /// The most that a poll pays: events that it asks or records, and uses that end.
  struct Budget {
    std::size_t asked;
    std::size_t ended;
  };
  /// For a request that free memory serves; for one that would grow; for one that would be refused.
  static constexpr Budget kFew{bound(8), bound(256)}, kMany{bound(256), bound(256)},
      kAll{SIZE_MAX, SIZE_MAX};
  /// The hits of a heap from one poll to the next, while anything waits. A poll takes a lock that
  /// all threads share. With one at each hit, two threads take twice as long, for .002 more E.
  static constexpr std::size_t kHitsPerPoll = 8;
  /// For the poll after so many hits: it may ask for each as much as kFew.
  static constexpr Budget kHits{std::min(kHitsPerPoll * kFew.asked, kMany.asked), kFew.ended};

  using Release = std::function<void(const Pending&)>;
  /// `release` is called for what has become ready, in the thread that found it so. Then what was
  /// kept goes. A poll calls it under the lock of rank `polling`.
  PendingFrees(Device& device, SpareEvents& events, KnownStreams& streams, Release release,
               LockRank polling = LockRank::kPolling)
      : device_(device),
        events_(events),
        streams_(streams),
        release_(std::move(release)),
        polling_(polling) {}
  /// As a rule the heaps go too.
  ~PendingFrees() { drop(); }
  /// Nothing waits any more, and nothing is released: what was kept goes. Pre: no other thread uses
  /// this.
  void drop() noexcept;

  /// What waits, in number; a hint outside of any lock, exact when nobody is in add or poll.
  std::size_t waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  /// The factor by which polls are rarer than usual. Work that does not end is asked about ever
  /// less often, until there is more to wait for, or some of it has ended. A hint as well.
  unsigned backoff() const noexcept {
    const unsigned in_vain = polls_in_vain_.load(std::memory_order_relaxed);
    return in_vain < kPollsInVain ? 1 : 1u << std::min(in_vain - kPollsInVain, kMostBackoff);
  }

  /// Takes over what is pending: it is ready once the work queued so far on all of the fence's
  /// streams is complete, which may be at once. If that can never be recorded (a destroyed stream),
  /// it waits for the whole device. Takes no host memory.
  void add(Pending pending, Fence fence) noexcept;
  /// The same for a block. If the host has no memory for its fence, it waits for the whole device.
  void add(Pending pending, const StreamUses& streams) noexcept;
  /// Takes over a pending block when nobody knows what it waits for: it waits for the whole device.
  void addUnknown(Block& block) noexcept {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    const MutexLock lock(mutex_);
    unknown_.push(block);
  }

  /// Releases what has become ready, without waiting. True if there was any.
  bool poll(Budget most = kAll) noexcept;
  /// How much was released so far, in number.
  std::uint64_t released() const noexcept { return released_; }
  /// Waits until something is released, here or by a poll. It waits for queued work of one
  /// stream, or, when nothing else is left, of the whole device. False: there is nothing that it
  /// could wait for. One thread at a time, which goes for waitForStuck too.
  bool wait() noexcept;
  /// Waits for the whole device if something waits that nothing less can tell of; else false.
  bool waitForStuck() noexcept {
    if (waiting() == 0) return false;
    const RelaxedCaptureMode relaxed(device_);
    return waitForDevice();
  }

 private:
  /// What waits. It is released when no use of it is left.
  struct Waiting {
    Waiting() = default;
    ~Waiting() {
      if (in != nullptr) in->release(pending);
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

    PendingFrees* in = nullptr;  ///< null until it was added
    Pending pending{};
  };
  /// A stream that something waits for.
  struct Use {
    Stream stream;
    std::shared_ptr<Waiting> of;
    SharedEvent event{};  ///< behind that use; null while it is put off, or stuck
  };
  /// Uses go from one list to another as they are, which takes no host memory. None ends under a
  /// lock.
  using Uses = std::list<Use>;
  /// The uses of one stream. A use without an event has no wait of its own. It ends as soon as it
  /// reaches the front of the queue.
  struct Queue {
    Uses waiting;  ///< the oldest first
    Uses put_off;  ///< none has an event
  };

  // `uses` are of one stream. They go to another list, except if they are over.
  void attach(Uses& uses, bool last_resort) noexcept;
  void attachToPresent(Uses& uses, bool last_resort) noexcept;
  void enqueue(Uses& uses, bool hopeless) noexcept;
  void attachPutOff() noexcept;
  void release(Pending& pending) noexcept;
  std::size_t streamsWaitedFor() const noexcept {
    const MutexLock lock(mutex_);
    return queues_.size();
  }
  void pollNext(Budget& most) noexcept;
  void leaveReached(Queue& queue, Budget& most, Uses& reached) noexcept CISTERN_REQUIRES(mutex_);
  void leave(Queue& queue, SpareEvents::Answer answer, Uses& reached) noexcept
      CISTERN_REQUIRES(mutex_);
  std::optional<SharedEvent> oldest(Stream& from) noexcept;
  void waitForEvents(std::uint64_t released_before) noexcept;
  bool waitForDevice() noexcept;

  Device& device_;
  SpareEvents& events_;
  KnownStreams& streams_;
  Release release_;
  std::atomic<std::size_t> waiting_{0};
  std::atomic<std::uint64_t> released_{0};  ///< so far
  /// Polls in vain, one after another. The first kPollsInVain do not slow polling. Each further one
  /// doubles the backoff, up to 2^kMostBackoff.
  static constexpr unsigned kPollsInVain = 16, kMostBackoff = 6;
  std::atomic<unsigned> polls_in_vain_{0};
  Mutex polling_;
  mutable Mutex mutex_{LockRank::kPendingFrees};
  /// The streams in which something waits, or did when they were polled last.
  std::map<Stream, Queue> queues_ CISTERN_GUARDED_BY(mutex_);
  Stream next_ CISTERN_GUARDED_BY(mutex_){};  ///< the next to be polled is this, or the next higher
  Uses stuck_ CISTERN_GUARDED_BY(mutex_);     ///< no event could be recorded for them
  PendingBlocks unknown_ CISTERN_GUARDED_BY(mutex_);  ///< nor is it known on which streams
};

/// A set of streams, and what will wait for them. It is made before that is pending.
class PendingFrees::Fence {
 public:
  /// Throws std::bad_alloc, as add does.
  Fence() : of_(std::make_shared<Waiting>()) {}
  template <class Streams>
  explicit Fence(const Streams& streams) : Fence() {
    for (const Stream stream : streams) uses_.push_back({stream, of_});
  }
  /// Adds a stream that it does not have; else no-op. Throws std::bad_alloc, changing nothing.
  void add(Stream stream) {
    const bool there = std::ranges::find(uses_, stream, &Use::stream) != uses_.end();
    if (!there) uses_.push_back({stream, of_});
  }
  bool empty() const { return uses_.empty(); }
  void clear() noexcept { uses_.clear(); }
  std::vector<Stream> streams() const {
    std::vector<Stream> all;
    for (const Use& use : uses_) all.push_back(use.stream);
    return all;
  }

 private:
  friend PendingFrees;
  std::shared_ptr<Waiting> of_;
  Uses uses_;
};

}  // namespace cistern
