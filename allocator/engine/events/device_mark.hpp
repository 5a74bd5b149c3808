// The work that the known streams of the device had queued at one moment.
//
// A program may use memory on a stream that the allocator was not told of, and order that use
// before the owner's next use. So one stream's event does not say that memory is unused. A mark
// holds an event of every known stream that had work queued. When all of them are complete,
// everything that was freed before the mark is unused. Note [Unrecorded uses] in progress.hpp has
// the proof.
//
// If there are many streams, a mark is made in several steps, so that no request pays for all of
// them. An event that is recorded later is as safe. Marks take turns: streams are asked for one
// mark at a time, and everything freed meanwhile shares the next one. So each request asks a
// bounded number of streams, and all requests together ask each stream once a turn.
//
//   a mark is reached  <=>  it has begun, unasked_ and left_ are empty, and it is not in vain
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/events/spare_events.hpp"

namespace cistern {

/// Thread-safe. Streams and events are asked under its lock.
class DeviceMark {
 public:
  using Answer = SpareEvents::Answer;
  /// A stream's answer: an event behind all that it has queued; no event, if it is idle; or no
  /// answer (`told` is false).
  struct Work {
    bool told = false;
    SharedEvent event{};
    bool dead = false;  ///< it was destroyed without notice, and cannot be asked
  };

  /// From now on streams are asked. The mark covers what was freed by now. Throws std::bad_alloc,
  /// changing nothing.
  void begin(std::vector<Stream> streams) {
    const MutexLock lock(mutex_);
    left_.reserve(streams.size());
    dead_.reserve(streams.size());
    unasked_ = std::move(streams);
    begun_ = true;
  }
  /// Asks at most `most` more streams: ask(Stream) returns Work. Returns how many of `most` are
  /// left. Pre: it has begun.
  template <class Ask>
  std::size_t advance(std::size_t most, Ask ask) {
    const MutexLock lock(mutex_);
    for (; !in_vain_ && !unasked_.empty() && most > 0; --most) {
      Work work = ask(unasked_.back());
      if (work.dead) dead_.push_back(unasked_.back());  // there is room, as in left_
      unasked_.pop_back();
      in_vain_ = !work.told;
      if (work.event != nullptr) left_.push_back(std::move(work.event));  // there is room
    }
    return most;
  }
  /// Whether no stream is left to ask.
  bool allAsked() const {
    const MutexLock lock(mutex_);
    return begun_ && (in_vain_ || unasked_.empty());
  }
  /// Whether memory that was freed on the stream `own` is unused. The answer is kInVain, for good,
  /// if a stream did not tell, an event became part of a capture, or `own` was destroyed without
  /// notice. An event that was complete is not asked again.
  Answer ask(SpareEvents& events, Stream own) noexcept {
    const MutexLock lock(mutex_);
    while (!in_vain_ && !left_.empty()) {
      const Answer answer = events.ask(*left_.back());
      if (answer == Answer::kNotYet) return answer;
      in_vain_ = answer == Answer::kInVain;
      left_.pop_back();
    }
    return answerNow(own);
  }
  /// The mark's answer as far as it is known, without asking the device.
  Answer answer(Stream own) const noexcept {
    const MutexLock lock(mutex_);
    return answerNow(own);
  }
  /// Calls order(events) with the events that are left. Returns what that does; false if it is in
  /// vain. Pre: no stream is unasked.
  template <class Order>
  bool order(Order order) const noexcept {
    const MutexLock lock(mutex_);
    return !in_vain_ && order(left_);
  }

 private:
  Answer answerNow(Stream own) const CISTERN_REQUIRES(mutex_) {
    if (in_vain_ || std::ranges::find(dead_, own) != dead_.end()) return Answer::kInVain;
    return begun_ && unasked_.empty() && left_.empty() ? Answer::kReached : Answer::kNotYet;
  }

  mutable Mutex mutex_{LockRank::kMark};
  std::vector<Stream> unasked_ CISTERN_GUARDED_BY(mutex_);
  std::vector<SharedEvent> left_ CISTERN_GUARDED_BY(mutex_);
  std::vector<Stream> dead_ CISTERN_GUARDED_BY(mutex_);
  bool begun_ CISTERN_GUARDED_BY(mutex_) = false;
  bool in_vain_ CISTERN_GUARDED_BY(mutex_) = false;
};

/// A mark, for as long as a heap waits for it.
using SharedMark = std::shared_ptr<DeviceMark>;

}  // namespace cistern
