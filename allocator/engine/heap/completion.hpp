// How far the stream of a heap is known to have come.
//
// A block freed on the heap's stream may be handed out again on that stream at once: the stream's
// own order makes it safe. To hand it to anyone else, the work queued at its free must be complete.
// For that a heap counts epochs: every free is stamped with the current epoch, and when someone
// else would like this heap's memory an event is recorded on the stream and the epoch ends. Once
// that event is complete, every free block stamped with that epoch or an earlier one is safe for
// all. Several such events may be under way: what is freed between two of them is safe when the
// second is complete, and not only when all is that the stream had queued by the next look.
//
//   marks[0].epoch <= marks[1].epoch <= … < epoch,  completed < epoch
//   a capture that is under way began in an epoch that has ended
//
// Guarded by the heap's lock. progress.hpp asks the streams.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "allocator/base/ablation.hpp"
#include "allocator/base/check.hpp"
#include "allocator/base/sabotage.hpp"
#include "allocator/engine/streams/event_pool.hpp"

namespace cistern {

/// An epoch of one heap, as something outside of its blocks remembers it: epochs are renumbered
/// when they run out, and then count from `generation` anew.
struct EpochMark {
  std::uint32_t epoch = 0;
  std::uint32_t generation = 0;
};

/// The epochs that a free block may be stamped with to be taken.
struct Epochs {
  std::uint32_t first = 0, last = UINT32_MAX;
  static Epochs upTo(std::uint32_t last) { return {0, last}; }
  static Epochs none() { return {1, 0}; }
  bool contain(std::uint32_t epoch) const { return first <= epoch && epoch <= last; }
};

class Completion {
 public:
  using Answer = EventPool::Answer;
  /// What any epoch from before a renumbering may be afterwards, at most.
  static constexpr std::uint32_t kOldEpochs = 1;

  explicit Completion(std::uint32_t first_epoch) : epoch_(first_epoch) {}

  /// The present epoch.
  EpochMark now() const { return {epoch_, generation_}; }
  /// The last epoch that is known to be complete.
  std::uint32_t completed() const { return completed_; }
  /// What memory that was used last at that mark is stamped with now.
  std::uint32_t stampOf(EpochMark mark) const {
    return mark.generation == generation_ ? mark.epoch : kOldEpochs;
  }
  /// Whether all that was freed in that epoch or before is complete.
  bool complete(EpochMark mark) const {
    return stampOf(mark) <= completed_ || broken(Rule::kCompletion);
  }
  /// All that was freed in that epoch, which has ended, or before is complete.
  void noteComplete(EpochMark mark) noexcept {
    // Renumbered meanwhile: whoever asks again learns it.
    if (mark.generation == generation_) completed_ = std::max(completed_, mark.epoch);
  }
  /// Ends the present epoch; it was that. Pre: not ranOut().
  EpochMark endEpoch() noexcept { return {epoch_++, generation_}; }
  /// Epochs have run out of numbers: blocks are to be stamped anew (Heap::endedEpoch).
  bool ranOut() const { return epoch_ == UINT32_MAX; }
  /// Counts from kOldEpochs on. What is under way marks nothing any more.
  void renumber() noexcept {
    completed_ = 0;
    freed_ = true;
    for (Mark& mark : marks_) mark.epoch = 0;
    epoch_ = kOldEpochs;
    ++generation_;
  }
  /// All epochs that have ended are complete, and no capture is under way: the heap will be another
  /// stream's. Pre: not isAsked().
  void beginAnew() noexcept {
    completed_ = epoch_ - 1;
    freed_ = false;
    recorded_ = 0;
    noteSought();
  }

  // ---- Frees: whether there were any

  void noteFreed(std::uint64_t bytes = 0) noexcept {
    freed_ = true;
    freed_bytes_ += bytes;
  }
  /// What no mark covers.
  bool anyUnmarked() const { return freed_; }
  /// What is not known to be complete.
  bool anyUnknown() const { return freed_ || under_way_ != 0; }

  // ---- Marks: events recorded on the stream, and not yet seen complete

  /// Begins to record or ask, outside the lock: one thread at a time. False where another is at it,
  /// or there is nothing to ask and no mark may be made.
  bool beginLook(bool may_mark) noexcept {
    if (busy_ || (under_way_ == 0 && !may_mark)) return false;
    return busy_ = true;
  }
  void endLook() noexcept { busy_ = false; }
  /// Whether a thread is at it, or an event is under way.
  bool isAsked() const { return busy_ || under_way_ != 0; }
  /// The event of the oldest mark; null when none is under way.
  SharedEvent oldest() const { return marks_[0].event; }
  /// That event has answered: the mark is gone.
  void passOldest(Answer answer) noexcept {
    const Mark oldest = std::exchange(marks_[0], {});
    if (answer == Answer::kReached) completed_ = std::max(completed_, oldest.epoch);
    if (answer == Answer::kInVain) freed_ = true;  // the next covers it too
    std::rotate(marks_.begin(), marks_.begin() + 1, marks_.begin() + under_way_--);
  }
  /// Whether there may be one mark more.
  bool hasRoom() const { return under_way_ < (without(Mechanism::kSeveralMarks) ? 1 : kMostMarks); }
  /// What was freed by now is about to be marked. True if no other mark is under way.
  bool beginMark() noexcept {
    freed_ = false;
    freed_bytes_ = 0;
    return under_way_ == 0;
  }
  /// It was, up to the epoch `until`, or could not be. `again`: in place of the youngest. What
  /// epochs were before they were renumbered is marked anew.
  void endMark(Answer answer, EpochMark until, bool again, SharedEvent event) noexcept {
    if (answer == Answer::kReached) noteComplete(until);
    if (answer == Answer::kInVain) freed_ = true;  // the next covers it too
    if (answer == Answer::kNotYet && until.generation == generation_) {
      under_way_ = std::uint8_t(under_way_ + !again);
      marks_[under_way_ - 1u] = {std::move(event), until.epoch};
    }
    busy_ = false;
  }
  /// Another heap looks for memory here: for a while what is freed is worth a mark at once.
  void noteSought() noexcept { free_marks_ = kMostFreeMarks; }
  /// Whether what was freed since the last mark is worth one at once: other heaps have looked for
  /// memory here lately, and it is much of the heap's `bytes`.
  bool wantsMark(std::uint64_t bytes) const {
    constexpr std::uint64_t kPart = 64;
    if (without(Mechanism::kMarksAtFrees)) return false;
    return free_marks_ > 0 && freed_bytes_ >= bytes / kPart;
  }
  /// That mark is about to be made.
  void noteMarkAtFree() noexcept {
    freed_bytes_ = 0;
    if (free_marks_ > 0) --free_marks_;
  }

  // ---- A capture into the pool. Meanwhile frees are for recording.cpp, and what the stream
  // has done by now says nothing of what the capture has freed.

  /// The number of the one that is under way, or 0.
  std::uint32_t recorded() const { return recorded_; }
  /// `before`: the epoch that has ended with it.
  void beginRecording(std::uint32_t number, EpochMark before) noexcept {
    recorded_ = number;
    before_recording_ = before;
  }
  /// False when that one is not under way.
  bool endRecording(std::uint32_t number) noexcept {
    if (recorded_ != number) return false;
    recorded_ = 0;
    return true;
  }
  /// The epoch that ended when the latest began.
  EpochMark beforeRecording() const { return before_recording_; }

  /// Checks what is promised above; aborts if it does not hold.
  void audit() const {
    CISTERN_CHECK(completed_ < epoch_ && under_way_ <= kMostMarks);
    for (std::size_t i = 0; i < under_way_; ++i) {
      const bool last = i + 1 == under_way_;
      CISTERN_CHECK(marks_[i].epoch < (last ? epoch_ : marks_[i + 1].epoch + 1));
    }
    if (recorded_ != 0) CISTERN_CHECK(stampOf(before_recording_) < epoch_);
  }

 private:
  struct Mark {
    SharedEvent event;
    std::uint32_t epoch = 0;  ///< the last that it marks
  };
  static constexpr std::size_t kMostMarks = 16;
  /// Three times all that the heap has.
  static constexpr std::uint8_t kMostFreeMarks = 192;

  std::uint32_t epoch_;
  std::uint32_t generation_ = 0;  ///< how often epochs were renumbered
  std::uint32_t completed_ = 0;
  std::uint32_t recorded_ = 0;
  bool freed_ = false;
  bool busy_ = false;            ///< a thread is recording or asking, outside the lock
  std::uint8_t under_way_ = 0;   ///< so many marks, the oldest first
  std::uint8_t free_marks_ = 0;  ///< so many more are worth one at a free: others look for memory
  EpochMark before_recording_;
  std::uint64_t freed_bytes_ = 0;  ///< since the last mark
  std::array<Mark, kMostMarks> marks_{};
};

}  // namespace cistern
