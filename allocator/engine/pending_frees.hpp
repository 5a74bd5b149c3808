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
// Locks: mutex_ guards which queues there are; each queue has its own, under which its events are
// recorded and queried (so that nothing is attached to an event before it is recorded), but never
// waited for. No heap's lock is held meanwhile. Both come after those of known streams.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/device/device.hpp"
#include "allocator/engine/event_pool.hpp"
#include "allocator/engine/heap.hpp"
#include "allocator/engine/known_streams.hpp"

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
    Heap* heap;
    Block* block;
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
  [[nodiscard]] bool add(Retired retired, const StreamUses& streams);
  /// The blocks that have become ready. Waits for nothing.
  std::vector<Retired> poll();
  /// Waits for queued work of one stream, or, when nothing else is left, of the whole device, until
  /// some blocks are ready. None: there is nothing that could be waited for. One thread at a time.
  std::vector<Retired> wait();
  /// Waits for the whole device if there are blocks that nothing less can tell of.
  std::vector<Retired> waitForStuck();

 private:
  struct Waiting {
    Retired retired;
    std::atomic<int> points;  ///< not yet complete
  };
  struct Point {
    Event event;
    std::vector<Waiting*> blocks;
    SharedStreamEnd end;  ///< of a stream that is gone, whose event it is; null: its own
  };
  struct Queue {
    explicit Queue(Stream s) : stream(s) {}
    const Stream stream;
    Mutex mutex;
    std::deque<Point> points CISTERN_GUARDED_BY(mutex);  ///< oldest first
    bool open CISTERN_GUARDED_BY(mutex) = false;         ///< the newest point takes further frees
  };

  Queue& queueOf(Stream stream);
  std::vector<Queue*> queues() const;
  struct PutOff {
    Stream stream;
    Waiting* waiting;
  };

  /// How a block waits for a stream: at a point of it, or later; not at all, as its work is
  /// complete; or there is no way to.
  enum class Wait : std::uint8_t { kAttached, kOver, kNoWay };

  /// Who takes what is recorded on a stream: a capture, or the stream itself.
  enum class Recorder : std::uint8_t { kNone, kCapture, kUnknown, kDead };
  /// What a point's event says; kNone also where it does not answer.
  enum class Answer : std::uint8_t { kNone, kReached, kCaptured };

  Recorder recorderOf(Stream stream);
  Wait attachOrPutOff(Stream stream, Waiting& waiting, bool last_resort);
  Wait attachToPresent(Stream stream, Waiting& waiting, bool last_resort);
  Wait attachToEnd(Stream stream, const SharedStreamEnd& end, Waiting& waiting);
  void attachPutOff(bool last_resort, std::vector<Retired>& ready);
  void putOff(Stream stream, const std::vector<Waiting*>& blocks);
  bool attach(Queue& queue, Waiting& waiting);
  void letGo(const Point& point);
  static Answer answerOf(const Status& status);
  Answer ask(const Point& point);
  void leave(const Queue& queue, const Point& point, Answer answer, std::vector<Retired>& ready);
  void collect(Queue& queue, std::vector<Retired>& ready);
  bool waitForOldest(Queue& queue, std::vector<Retired>& ready);
  void waitOnce(std::vector<Retired>& ready);
  void collectStuck(std::vector<Retired>& ready);
  void arrived(Waiting& waiting, std::vector<Retired>& ready);

  Device& device_;
  EventPool& events_;
  KnownStreams& streams_;
  std::atomic<std::size_t> waiting_{0};
  /// In turn. So many of them change nothing; then patience doubles with each, up to
  /// 2^kMostPatience.
  static constexpr unsigned kPollsInVain = 16, kMostPatience = 6;
  std::atomic<unsigned> polls_in_vain_{0};
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<Queue>> queues_ CISTERN_GUARDED_BY(mutex_);
  std::vector<PutOff> put_off_ CISTERN_GUARDED_BY(mutex_);
  std::vector<Waiting*> stuck_ CISTERN_GUARDED_BY(mutex_);  ///< no event could be recorded for them
};

}  // namespace cistern
