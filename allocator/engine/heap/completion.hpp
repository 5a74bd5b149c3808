// Which of a heap's free memory is unused by now.
//
// A block freed on the heap's stream may be handed out again on that stream at once: the stream's
// own order makes it safe. It may go to anyone else as soon as all work queued at its free is
// complete on every stream: Note [Unrecorded uses] in progress.hpp. Otherwise the other's work has
// to be ordered behind that work, on the device or in a graph. For completion a heap counts epochs:
// every free is stamped with the current epoch. When another heap wants this heap's memory, the
// epoch ends and a mark of the device is made (device_mark.hpp). Once the mark is reached, every
// free block stamped with that epoch or an earlier one is safe for all. Several marks may be under
// way: what was freed between two of them is safe when the second is reached.
//
//   completed < epoch,  marks[0].epoch <= marks[1].epoch <= … < epoch
//
// Epochs never run out. A block's record has room for 32 bits only, so its stamp counts from a
// base. When the next epoch would have no stamp, the base moves on, and all free blocks get new
// stamps.
//
//   base < epoch <= base + UINT32_MAX
//
// Guarded by the heap's lock. progress.hpp asks the streams.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "allocator/base/ablation.hpp"
#include "allocator/base/bounds.hpp"
#include "allocator/base/check.hpp"
#include "allocator/base/sabotage.hpp"
#include "allocator/engine/events/device_mark.hpp"

namespace cistern {

/// A range of epochs. A search takes only blocks that were freed in it.
struct Epochs {
  std::uint64_t first = 0, last = UINT64_MAX;
  static Epochs upTo(std::uint64_t last) { return {0, last}; }
  static Epochs none() { return {1, 0}; }
  bool contain(std::uint64_t epoch) const { return first <= epoch && epoch <= last; }
};

class Completion {
 public:
  using Answer = SpareEvents::Answer;
  /// The most marks that are under way at once.
  static constexpr std::size_t kMostMarks = bound(16);
  /// A free gets its own mark once 1/kMarksOfAll of the heap was freed since the last mark. A
  /// smaller part would make more marks than can be under way. They would replace each other, and
  /// each costs a query of all streams.
  static constexpr std::uint64_t kMarksOfAll = kMostMarks;

  explicit Completion(std::uint64_t first_epoch) : epoch_(first_epoch) {}

  /// The present epoch.
  std::uint64_t now() const { return epoch_; }
  /// The last epoch that is known to be complete.
  std::uint64_t completed() const { return completed_; }
  /// Whether all that was freed in that epoch or before is complete.
  bool complete(std::uint64_t epoch) const {
    return epoch <= completed_ || broken(Rule::kCompletion);
  }
  /// All that was freed in that epoch, which has ended, or before is complete.
  void noteComplete(std::uint64_t epoch) noexcept { completed_ = std::max(completed_, epoch); }
  /// Ends the present epoch, and returns it. Pre: not ranOut().
  std::uint64_t endEpoch() noexcept { return epoch_++; }

  // ---- Stamps: the epochs of free blocks

  /// The stamp of memory that was used last in that epoch. An epoch at or below the base has no
  /// stamp of its own. It gets kComplete if it is complete, else kFirst.
  std::uint32_t stampOf(std::uint64_t epoch) const {
    if (epoch > base_) return std::uint32_t(epoch - base_);
    return epoch <= completed_ ? kComplete : kFirst;
  }
  /// The epoch that a stamp means; 0 for what is complete for good.
  std::uint64_t epochOf(std::uint32_t stamp) const {
    return stamp == kComplete ? 0 : base_ + stamp;
  }
  /// The next epoch has no stamp: all free blocks must get new ones (Heap::endedEpoch).
  bool ranOut() const { return epoch_ - base_ == UINT32_MAX; }
  /// From now on kFirst means the present epoch. Incomplete blocks then count as freed in that,
  /// which no mark covers yet.
  void moveBase() noexcept {
    base_ = epoch_ - 1;
    freed_ = true;
  }
  static constexpr std::uint32_t kComplete = 0, kFirst = 1;

  /// Notes that all ended epochs are complete and that no capture is under way. The heap is about
  /// to become another stream's. Pre: not isAsked().
  void beginAnew() noexcept {
    noteComplete(now() - 1);
    freed_ = false;
    captured_ = 0;
    noteSought();
  }

  // ---- Frees: whether there were any

  void noteFreed(std::uint64_t bytes = 0) noexcept {
    freed_ = true;
    freed_bytes_ += bytes;
  }
  /// Whether something was freed that no mark covers.
  bool anyUnmarked() const { return freed_; }
  /// Whether something is not known to be complete.
  bool anyUnknown() const { return freed_ || under_way_ != 0; }

  // ---- Memory that leaves for other addresses, or another heap. Queued work may go on using it
  // through the addresses that it had here.

  /// Memory leaves that was used last in `epoch`.
  void noteLeft(std::uint64_t epoch) noexcept { left_ = std::max(left_, epoch); }
  bool leftInUse() const { return !complete(left_); }

  // ---- Marks that were made for this heap, and that are not yet seen reached
  //
  // A look (core/progress.cpp) calls beginLook, then passOldest for each mark that has answered.
  // Without a mark to make, it calls endLook. Otherwise it calls beginMark, ends the epoch under
  // the same lock, and calls endMark with the mark's answer. It asks marks and streams outside the
  // lock. Until endLook or endMark, no other thread changes the marks.

  /// Whose look it is: the caller's; another thread's; or nobody's, as there is nothing to ask and
  /// no mark may be made.
  enum class Look : std::uint8_t { kOurs, kOthers, kNone };

  /// Begins to record or ask, outside the lock: one thread at a time.
  Look beginLook(bool may_mark) noexcept {
    if (busy_) return Look::kOthers;
    busy_ = under_way_ != 0 || may_mark;
    return busy_ ? Look::kOurs : Look::kNone;
  }
  void endLook() noexcept { busy_ = false; }
  /// Whether a thread is at it, or a mark is under way.
  bool isAsked() const { return busy_ || under_way_ != 0; }
  /// The oldest mark; null when none is under way.
  SharedMark oldest() const { return marks_[0].mark; }
  /// The oldest mark has answered, and is gone.
  void passOldest(Answer answer) noexcept {
    const Mark oldest = std::exchange(marks_[0], {});
    if (answer == Answer::kReached) noteComplete(oldest.epoch);
    if (answer == Answer::kInVain) freed_ = true;  // the next covers it too
    std::rotate(marks_.begin(), marks_.begin() + 1, marks_.begin() + under_way_--);
  }
  /// Whether there may be one mark more.
  bool hasRoom() const { return under_way_ < (without(Mechanism::kSeveralMarks) ? 1 : kMostMarks); }
  /// All that was freed by now is about to be marked.
  void beginMark() noexcept {
    freed_ = false;
    freed_bytes_ = 0;
  }
  /// Ends what beginMark began, for a mark up to the epoch `until`. kReached: all that it covers is
  /// complete already. kNotYet: the mark is under way. kInVain: it could not be made. `again`: it
  /// takes the youngest mark's place.
  void endMark(Answer answer, std::uint64_t until, bool again, SharedMark mark) noexcept {
    if (answer == Answer::kReached) noteComplete(until);
    if (answer == Answer::kInVain) freed_ = true;  // the next covers it too
    if (answer == Answer::kNotYet) {
      under_way_ = std::uint8_t(under_way_ + !again);
      marks_[under_way_ - 1u] = {std::move(mark), until};
    }
    busy_ = false;
  }
  /// Another heap looks for memory here. For a while, what is freed is worth a mark at once.
  void noteSought() noexcept { free_marks_ = kMostFreeMarks; }
  /// Whether what was freed since the last mark is worth one at once. It is if other heaps have
  /// looked for memory here lately, and it is much of the heap's `bytes`.
  bool wantsMark(std::uint64_t bytes) const {
    if (without(Mechanism::kMarksAtFrees)) return false;
    return free_marks_ > 0 && freed_bytes_ >= bytes / kMarksOfAll;
  }
  /// That mark is about to be made.
  void noteMarkAtFree() noexcept {
    freed_bytes_ = 0;
    if (free_marks_ > 0) --free_marks_;
  }

  // ---- A capture into the pool. Meanwhile frees are for live_capture.cpp, and what the stream
  // has done by now says nothing of what the capture has freed.

  /// The number of the capture that is under way, or 0.
  std::uint32_t captured() const { return captured_; }
  void beginCapture(std::uint32_t number) noexcept {
    captured_ = number;
    left_before_capture_ = left_;
  }
  /// False when the capture of that number is not under way.
  bool endCapture(std::uint32_t number) noexcept {
    if (captured_ != number) return false;
    captured_ = 0;
    return true;
  }
  /// Whether memory that left before the latest capture may still be in use.
  bool leftInUseBefore() const { return !complete(left_before_capture_); }

  /// Checks what is promised above; aborts if it does not hold.
  void audit() const {
    CISTERN_CHECK(completed_ < epoch_);
    CISTERN_CHECK(base_ < epoch_ && epoch_ - base_ <= UINT32_MAX);
    CISTERN_CHECK(under_way_ <= kMostMarks);
    for (std::size_t i = 0; i < under_way_; ++i) {
      const bool last = i + 1 == under_way_;
      CISTERN_CHECK(marks_[i].epoch < (last ? now() : marks_[i + 1].epoch + 1));
    }
    CISTERN_CHECK(left_before_capture_ <= left_ && left_ <= now());
  }

 private:
  struct Mark {
    SharedMark mark;
    std::uint64_t epoch = 0;  ///< the last that it covers
  };
  /// After a search, enough early marks to cover the heap twelve times.
  static constexpr std::uint8_t kMostFreeMarks = bound(12 * kMarksOfAll);

  std::uint64_t epoch_;
  std::uint64_t base_ = 0;
  std::uint64_t completed_ = 0;
  std::uint32_t captured_ = 0;
  bool freed_ = false;
  bool busy_ = false;            ///< a thread is recording or asking, outside the lock
  std::uint8_t under_way_ = 0;   ///< how many marks are under way; the oldest comes first
  std::uint8_t free_marks_ = 0;  ///< marks at frees still to make: others look for memory
  std::uint64_t left_ = 0;       ///< the last epoch in which memory was used that has left since
  std::uint64_t left_before_capture_ = 0;
  std::uint64_t freed_bytes_ = 0;  ///< since the last mark
  std::array<Mark, kMostMarks> marks_{};
};

}  // namespace cistern
