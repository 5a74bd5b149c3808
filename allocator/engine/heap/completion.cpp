#include "allocator/engine/heap/completion.hpp"

#include <algorithm>
#include <utility>

#include "allocator/base/check.hpp"

namespace cistern {

void Completion::noteComplete(EpochMark mark) noexcept {
  if (mark.generation != generation_) return;  // renumbered meanwhile: whoever asks again learns it
  completed_ = std::max(completed_, mark.epoch);
}

void Completion::renumber() noexcept {
  completed_ = 0;
  freed_ = true;
  for (Mark& mark : marks_) mark.epoch = 0;
  epoch_ = kOldEpochs;
  ++generation_;
}

void Completion::beginAnew() noexcept {
  completed_ = epoch_ - 1;
  freed_ = false;
  free_marks_ = 0;
  recorded_ = 0;
}

bool Completion::beginLook(bool may_mark) noexcept {
  if (busy_ || (under_way_ == 0 && !may_mark)) return false;
  return busy_ = true;
}

void Completion::passOldest(Answer answer, std::uint64_t now) noexcept {
  const Mark oldest = std::exchange(marks_[0], {});
  if (answer == Answer::kReached) completed_ = std::max(completed_, oldest.epoch);
  if (answer == Answer::kReached) took_ = now - oldest.at;
  if (answer == Answer::kInVain) freed_ = true;  // the next covers it too
  std::rotate(marks_.begin(), marks_.begin() + 1, marks_.begin() + under_way_--);
}

bool Completion::isTimeToMark(std::uint64_t now) const {
  constexpr std::uint64_t kPart = 32;
  if (under_way_ == 0) return true;
  const bool soon = now - marks_[under_way_ - 1u].at < took_ / kPart;
  return hasRoom() && (!soon || without(Mechanism::kTimeToMark));
}

bool Completion::beginMark() noexcept {
  freed_ = false;
  freed_bytes_ = 0;
  return under_way_ == 0;
}

// What epochs were before they were renumbered is marked anew.
void Completion::endMark(Answer answer, EpochMark until, bool again, SharedEvent event,
                         std::uint64_t now) noexcept {
  if (answer == Answer::kReached) noteComplete(until);
  if (answer == Answer::kInVain) freed_ = true;  // the next covers it too
  if (answer == Answer::kNotYet && until.generation == generation_) {
    under_way_ = std::uint8_t(under_way_ + !again);
    marks_[under_way_ - 1u] = {std::move(event), until.epoch, now};
  }
  busy_ = false;
}

void Completion::noteMarkAtFree() noexcept {
  freed_bytes_ = 0;
  if (free_marks_ > 0) --free_marks_;
}

void Completion::beginRecording(std::uint32_t number, EpochMark before) noexcept {
  recorded_ = number;
  before_recording_ = before;
}

bool Completion::endRecording(std::uint32_t number) noexcept {
  if (recorded_ != number) return false;
  recorded_ = 0;
  return true;
}

void Completion::audit() const {
  CISTERN_CHECK(completed_ < epoch_ && under_way_ <= kMostMarks);
  for (std::size_t i = 0; i < under_way_; ++i) {
    const bool last = i + 1 == under_way_;
    CISTERN_CHECK(marks_[i].epoch < (last ? epoch_ : marks_[i + 1].epoch + 1));
  }
  if (recorded_ != 0) CISTERN_CHECK(stampOf(before_recording_) < epoch_);
}

}  // namespace cistern
