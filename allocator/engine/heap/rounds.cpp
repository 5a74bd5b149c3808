#include "allocator/engine/heap/rounds.hpp"

#include <new>
#include <utility>

#include "allocator/base/steps.hpp"

namespace cistern {

// Nothing has wrapped around so far. False: the host has no memory for it.
bool Rounds::grow() noexcept try {
  if (slots_ == kMost) return true;
  const std::uint32_t slots = slots_ == 0 ? kFirst : 2 * slots_;
  auto more = std::make_unique_for_overwrite<Asked[]>(slots);
  std::copy_n(asked_.get(), slots_, more.get());
  asked_ = std::move(more);
  slots_ = slots;
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void Rounds::follow(std::uint64_t counterpart) noexcept {
  cursor_ = counterpart;
  needed_ = std::max(kLeast, 2 * period());
  adrift_ = 0;
}

void Rounds::lose() noexcept {
  matched_ = 0;
  adrift_ = 0;
  credit_ = 0;
  cursor_ = needed_ = kNone;
}

// The last request is not the one that was expected, which the cursor stands on now. Where that is
// so too often, what the cursor follows is no round: the next layer of a network, say, rather than
// the next step.
void Rounds::deviate() noexcept {
  constexpr std::int64_t kCost = 16, kCredit = 256;
  const auto most = std::max(kCredit, std::int64_t(4 * period())), matched = std::int64_t(matched_);
  const std::int64_t credit = std::min(most, credit_ + matched) - kCost;
  credit_ = credit - matched;
  if (credit < 0) return lose();
  deviated_ = true;
  anchor_ = cursor_;
  adrift_ = 1;
  cursor_ = needed_ = kNone;
}

// Caches of threads serve a few requests in one round and not in another. So the round goes on
// where the last two sizes are found nearby, the nearest first.
void Rounds::findNearby() noexcept {
  constexpr std::uint64_t kNearby = 12, kGiveUp = 4 * kNearby;
  ++anchor_;
  if (++adrift_ > kGiveUp) return lose();
  const std::uint64_t last = count_ - 1;
  const std::uint32_t size = asked(last).granules, before = asked(last - 1).granules;
  noteSteps(2 * kNearby);
  for (std::uint64_t i = 0; i <= 2 * kNearby; ++i) {
    const std::uint64_t at = anchor_ + (i % 2 == 0 ? i / 2 : std::uint64_t{0} - (i + 1) / 2);
    if (at == 0 || at >= last || last - at > kMost / 2) continue;
    if (asked(at).granules == size && asked(at - 1).granules == before) return follow(at);
  }
}

void Rounds::planFreeze() noexcept {
  if (isFreezePlanned()) return;
  const std::uint64_t kept = std::min<std::uint64_t>(count_, slots_);
  noteSteps(kept);
  two_rounds_ = std::max(two_rounds_, std::uint32_t(needed_));
  least_busy_ = UINT32_MAX;
  for (std::uint64_t at = count_ - kept; at < count_; ++at) {
    most_busy_ = std::max(most_busy_, asked(at).busy);
    if (at > cursor_) least_busy_ = std::min(least_busy_, asked(at).busy);
  }
  guides_until_ = count_ + two_rounds_;
}

// matches()[d]: how many requests in a row, the last of them first, are as those d requests
// earlier. This is the Z algorithm (D. Gusfield, "Algorithms on strings, trees, and sequences",
// 1997), which compares each request about once.
std::vector<std::uint32_t> Rounds::matches() const {
  const std::uint64_t kept = std::min<std::uint64_t>(count_, slots_);
  const auto back = [&](std::uint64_t i) { return asked(count_ - 1 - i).granules; };
  std::vector<std::uint32_t> z(kept, 0);
  for (std::uint64_t d = 1, left = 0, right = 0; d < kept; ++d) {
    std::uint64_t same = d < right ? std::min<std::uint64_t>(right - d, z[d - left]) : 0;
    while (d + same < kept && back(same) == back(d + same)) ++same;
    z[d] = std::uint32_t(same);
    if (d + same > right) {
      left = d;
      right = d + same;
    }
  }
  return z;
}

// Of all distances at which much is the same, the least is the period: at twice the distance it is
// the same, too. But layers of a network are alike, and so are the parts of a step. What is the
// same for a part of a step only is passed over where a whole step is. So a heap that follows one
// and deviates from it looks again, and changes to a longer one that has repeated itself for two
// rounds.
void Rounds::search() noexcept try {
  constexpr std::uint64_t kEachPart = 16, kFewest = 8;
  const std::uint64_t kept = std::min<std::uint64_t>(count_, slots_);
  if (count_ - searched_ < kLeast + kept / kEachPart || (follows() && !deviated_)) return;
  searched_ = count_;
  deviated_ = false;
  noteSteps(2 * kept);
  const std::vector<std::uint32_t> same = matches();
  const std::uint64_t followed = follows() ? count_ - 1 - (adrift_ != 0 ? anchor_ : cursor_) : 0;
  std::uint32_t longest = 0;
  for (std::uint64_t d = followed + 1; d <= kept / 2; ++d) longest = std::max(longest, same[d]);
  if (longest < kFewest) return;
  std::uint64_t distance = followed + 1;
  while (same[distance] < longest - longest / 4) ++distance;
  if (follows() && same[distance] < std::max(kLeast, 2 * distance)) return;
  matched_ = same[distance];
  credit_ = std::int64_t(longest) - std::int64_t(matched_);
  follow(count_ - 1 - distance);
  for (std::uint64_t i = 0; i + distance < kept && i < matched_; ++i)
    asked(count_ - 1 - i).before = asked(count_ - 1 - i - distance).at;
} catch (const std::bad_alloc&) {
}

}  // namespace cistern
