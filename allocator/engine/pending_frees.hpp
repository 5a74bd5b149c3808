// Blocks that the program has freed while work of other streams may still use them.
//
// For each such stream there is a queue of points. A point is an event, recorded after the frees
// that hang on it, and the blocks of those frees. Frees between two polls share one point: its
// event is recorded again for each, which only ever moves it later. A poll closes the newest point
// and asks the oldest, in order, until one is not complete. A block leaves when its last point is.
//
// Nothing is recorded on a stream that is being captured: the event would become part of the graph.
// Such a block is put off, and gets its point at a poll after the capture; so does one whose event
// could not be had. As a capture may begin between any two calls, the stream is asked again after
// each record, and an event that a capture has got all the same puts off what hangs on it. For a
// stream that is gone (known_streams.hpp) the point is its end.
//
// A program may have had any number of streams: a poll asks only the queues in which something
// waits, and drops those that it finds empty.
//
// A block that is added takes host memory for all that it waits for; polling and waiting take none.
// Where there is none it is among the unknown ones, which wait for the whole device, as one does
// for a stream that was destroyed without notice.
//
// Locks: mutex_ guards which queues there are; each queue has its own, under which its events are
// recorded and queried (so that nothing is attached to an event before it is recorded), but never
// waited for. No heap's lock is held meanwhile. Both come after those of known streams.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/device/device.hpp"
#include "allocator/engine/event_pool.hpp"
#include "allocator/engine/heap.hpp"
#include "allocator/engine/known_streams.hpp"
#include "allocator/engine/retired_blocks.hpp"

namespace cistern {

class PendingFrees {
 public:
  PendingFrees(Device& device, EventPool& events, KnownStreams& streams)
      : device_(device), events_(events), streams_(streams) {}
  ~PendingFrees();
  PendingFrees(const PendingFrees&) = delete;
  PendingFrees& operator=(const PendingFrees&) = delete;

  /// A block that was retired from its heap, now owned here until released.
  struct Retired {
    Heap* heap = nullptr;
    Block* block = nullptr;
    bool own = false;       ///< its heap's stream is among those that it waits for
    bool captured = false;  ///< a capture that is under way may have had the memory
  };

  /// Blocks that wait; a hint outside of any lock, exact when nobody is in add or poll.
  std::size_t waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }
  /// How much more seldom than usual to poll: work that does not end is asked about ever less
  /// often, until there is more to wait for, or some of it has ended. A hint as well.
  unsigned patience() const noexcept {
    const unsigned in_vain = polls_in_vain_.load(std::memory_order_relaxed);
    return in_vain < kPollsInVain ? 1 : 1u << std::min(in_vain - kPollsInVain, kMostPatience);
  }

  /// Takes over a retired block: it is ready once the work queued so far on all of `streams` is
  /// complete. Where that can never be recorded (a destroyed stream) it waits for the whole device.
  /// True when all of it is complete already: then the caller keeps the block, to release it.
  [[nodiscard]] bool add(Retired retired, const StreamUses& streams) noexcept;
  /// The same of one of which nobody can say what it waits for: for the whole device.
  void addUnknown(Retired retired) noexcept;

  /// Blocks that have become ready. Each is to be taken.
  class Ready;
  /// The blocks that have become ready. Waits for nothing.
  Ready poll() noexcept;
  /// Waits for queued work of one stream, or, when nothing else is left, of the whole device, until
  /// some blocks are ready. None: there is nothing that could be waited for. One thread at a time.
  Ready wait() noexcept;
  /// Waits for the whole device if there are blocks that nothing less can tell of.
  Ready waitForStuck() noexcept;

 private:
  struct Waiting;
  /// A stream that a block waits for.
  struct Use {
    Stream stream;
    Waiting* waiting;
    Use* next = nullptr;
  };
  /// In the order in which they came.
  class Uses {
   public:
    bool empty() const { return first_ == nullptr; }
    void push(Use& use) noexcept {
      use.next = nullptr;
      (last_ ? last_->next : first_) = &use;
      last_ = &use;
    }
    /// Null when there is none. What is taken may go, or be pushed elsewhere.
    Use* pop() noexcept {
      Use* const use = first_;
      if (use != nullptr) first_ = use->next;
      if (first_ == nullptr) last_ = nullptr;
      return use;
    }
    Uses takeAll() noexcept { return std::exchange(*this, {}); }
    void append(Uses others) noexcept {
      while (Use* use = others.pop()) push(*use);
    }

   private:
    Use* first_ = nullptr;
    Use* last_ = nullptr;
  };
  struct Waiting {
    Waiting(Retired what, const StreamUses& streams);
    const Retired retired;
    std::vector<Use> uses;
    std::atomic<int> points;  ///< not yet complete
    Waiting* next = nullptr;  ///< once it is ready
  };
  struct Point {
    Event event;
    Uses blocks;
    SharedStreamEnd end;  ///< of a stream that is gone, whose event it is; null: its own
  };
  struct Queue {
    explicit Queue(Stream s) : stream(s) {}
    const Stream stream;
    Mutex mutex;
    std::list<Point> points CISTERN_GUARDED_BY(mutex);  ///< oldest first
    bool open CISTERN_GUARDED_BY(mutex) = false;        ///< the newest point takes further frees
    // Under the mutex of all.
    std::size_t users =
        0;  ///< threads that may be looking at it: it stays as long as there are any
    Queue* previous = nullptr;
    Queue* next = nullptr;
  };
  class InUse;

  Queue* startUse(Stream stream) noexcept;
  Queue* moveOn(Queue* from) noexcept;
  void endUse(Queue& queue) noexcept;
  void dropIfEmpty(Queue& queue) noexcept CISTERN_REQUIRES(mutex_);
  template <class Visit>
  void forEachQueue(Visit visit) noexcept;

  /// How a block waits for a stream: at a point of it, or later; not at all, as its work is
  /// complete; or there is no way to.
  enum class Wait : std::uint8_t { kAttached, kOver, kNoWay };

  /// Who takes what is recorded on a stream: a capture, or the stream itself.
  enum class Recorder : std::uint8_t { kNone, kCapture, kUnknown, kDead };
  /// What a point's event says; kNone also where it does not answer.
  enum class Answer : std::uint8_t { kNone, kReached, kCaptured };

  Recorder recorderOf(Stream stream) noexcept;
  Wait attachOrPutOff(Use& use, bool last_resort) noexcept;
  Wait attachToPresent(Use& use, bool last_resort) noexcept;
  Wait attachToEnd(Use& use, const SharedStreamEnd& end) noexcept;
  void attachPutOff(bool last_resort, Ready& ready) noexcept;
  void putOff(Uses uses) noexcept;
  bool attach(Queue& queue, Use& use) noexcept;
  bool open(Queue& queue) noexcept CISTERN_REQUIRES(queue.mutex);
  void letGo(const Point& point) noexcept;
  static Answer answerOf(const Status& status) noexcept;
  Answer ask(const Point& point) noexcept;
  void leave(Point& point, Answer answer, Ready& ready) noexcept;
  void collect(Queue& queue, Ready& ready) noexcept;
  bool waitForOldest(Queue& queue, Ready& ready) noexcept;
  void waitOnce(Ready& ready) noexcept;
  void collectStuck(Ready& ready) noexcept;
  void arrived(Uses uses, Ready& ready) noexcept;
  void arrived(Use& use, Ready& ready) noexcept;

  Device& device_;
  EventPool& events_;
  KnownStreams& streams_;
  std::atomic<std::size_t> waiting_{0};
  /// In turn. So many of them change nothing; then patience doubles with each, up to
  /// 2^kMostPatience.
  static constexpr unsigned kPollsInVain = 16, kMostPatience = 6;
  std::atomic<unsigned> polls_in_vain_{0};
  Mutex mutex_;
  /// By stream; linked in the order in which they were made. In each something waits, or is about
  /// to, or did when it was polled last.
  std::unordered_map<std::uintptr_t, Queue> queues_ CISTERN_GUARDED_BY(mutex_);
  Queue* first_ CISTERN_GUARDED_BY(mutex_) = nullptr;
  Queue* last_ CISTERN_GUARDED_BY(mutex_) = nullptr;
  Uses put_off_ CISTERN_GUARDED_BY(mutex_);
  Uses stuck_ CISTERN_GUARDED_BY(mutex_);             ///< no event could be recorded for them
  RetiredBlocks unknown_ CISTERN_GUARDED_BY(mutex_);  ///< nor is it known on which streams
};

class PendingFrees::Ready {
 public:
  Ready() = default;
  Ready(Ready&& other) noexcept
      : first_(std::exchange(other.first_, nullptr)), unknown_(other.unknown_.takeAll()) {}
  Ready(const Ready&) = delete;
  Ready& operator=(const Ready&) = delete;
  ~Ready() = default;

  bool empty() const { return first_ == nullptr && unknown_.empty(); }
  /// Takes one. False when there is none.
  bool pop(Retired& retired) noexcept;

 private:
  friend class PendingFrees;
  Waiting* first_ = nullptr;
  Waiting* last_ = nullptr;
  RetiredBlocks unknown_;
};

}  // namespace cistern
