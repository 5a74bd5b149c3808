#include "allocator/engine/settling/amount.hpp"

#include <algorithm>
#include <utility>

#include "allocator/base/bytes.hpp"

namespace cistern {
namespace {

/// An attempt to come home that makes the device overflow again doubles the quiet steps before the
/// next, up to this.
constexpr std::uint32_t kMostQuiet = 1024;
/// The least part of the capacity by which slack grows, and the most that it doubles.
constexpr std::uint64_t kPartOfCapacity = 256;
constexpr std::uint32_t kMostMisses = 5;
/// A step that is longer by this part, and by so much, shows that a move did not pay.
constexpr std::uint64_t kPartLonger = 8, kLongerNs = 2'000'000;
constexpr std::uint32_t kMostPause = 1024;
/// Steps that show it.
constexpr std::uint32_t kTrial = 2;
/// Slack that is forgotten each time that it is asked what may come home.
constexpr std::uint64_t kPartForgotten = 64;
/// Less is not worth a wait.
constexpr std::uint64_t kLeast = 2 * kMiB;

/// Bytes by which `of` is beyond `from`.
std::uint64_t beyond(std::uint64_t of, std::uint64_t from) { return of > from ? of - from : 0; }

std::uint64_t toHost(SettleNotes& notes, const StepFigures& step, std::uint64_t over) {
  notes.quiet = 0;
  notes.most_need = 0;
  const bool too_early = std::exchange(notes.came_home, false);
  if (too_early) notes.wait = std::min(2 * notes.wait, kMostQuiet);
  if (over == 0) return 0;  // what did not fit in one step alone may never come again
  std::uint64_t room = step.capacity + step.on_host;
  if (step.need + notes.slack <= room) {
    const std::uint64_t more = std::max(step.capacity / kPartOfCapacity, kLeast)
                               << std::min(notes.misses++, kMostMisses);
    notes.slack = room - step.need + more;
  } else {
    notes.misses = 0;
  }
  return std::min(over, beyond(step.need + notes.slack, room));
}

SettleAmount toDevice(SettleNotes& notes, const StepFigures& step) {
  notes.misses = 0;
  notes.most_need = std::max(notes.most_need, step.need);
  if (++notes.quiet < notes.wait) return {};
  notes.quiet = 0;
  notes.slack -= notes.slack / kPartForgotten;
  const std::uint64_t need = std::exchange(notes.most_need, 0) + notes.slack;
  const std::uint64_t home = std::min(beyond(step.capacity + step.on_host, need), step.on_host);
  if (home < kLeast) return {.quiet = true};
  notes.came_home = true;
  return {.to_device = home, .quiet = true};
}

// Whether a move has just shown that it does not pay. The first step after it makes pages.
bool isRegretted(SettleNotes& notes, const StepFigures& step) {
  if (notes.trial == 0) return false;
  notes.trial_ns = std::min(notes.trial_ns, step.ns);
  if (--notes.trial > 0) return false;
  if (notes.trial_ns <= notes.without_ns + std::max(notes.without_ns / kPartLonger, kLongerNs))
    return false;
  notes.pause = notes.next_pause;
  notes.next_pause = std::min(2 * notes.next_pause, kMostPause);
  notes.last_over = notes.quiet = 0;
  return true;
}

}  // namespace

SettleAmount amountOf(SettleNotes& notes, const StepFigures& step) {
  const std::uint64_t before = std::exchange(notes.last_over, step.over);
  const std::uint64_t last_ns = std::exchange(notes.last_ns, step.ns);
  if (isRegretted(notes, step)) return {.to_device = step.on_host, .quiet = true};
  if (step.over == 0) return toDevice(notes, step);
  if (notes.trial > 0) return {};
  const std::uint64_t out = toHost(notes, step, std::min(step.over, before));
  if (notes.pause > 0) {
    --notes.pause;
    return {};
  }
  if (out > 0) {
    notes.trial = kTrial;
    notes.trial_ns = UINT64_MAX;
    notes.without_ns = std::min(last_ns, step.ns);
  }
  return {.to_host = out};
}

}  // namespace cistern
