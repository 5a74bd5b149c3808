#include "allocator/engine/heap/completion.hpp"

#include <algorithm>
#include <utility>

#include "allocator/base/check.hpp"

namespace cistern {

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
  if (without(Mechanism::kSeveralMarks)) return false;
  if (under_way_ == kMostMarks) return false;
  if (without(Mechanism::kTimeToMark)) return true;
  return now - marks_[under_way_ - 1u].at >= took_ / kPart;
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

void Completion::audit() const {
  CISTERN_CHECK(completed_ < epoch_ && under_way_ <= kMostMarks);
  for (std::size_t i = 0; i < under_way_; ++i) {
    const bool last = i + 1 == under_way_;
    CISTERN_CHECK(marks_[i].epoch < (last ? epoch_ : marks_[i + 1].epoch + 1));
  }
  if (recorded_ != 0) CISTERN_CHECK(stampOf(before_recording_) < epoch_);
}

}  // namespace cistern
