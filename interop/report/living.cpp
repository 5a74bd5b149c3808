#include "interop/report/living.hpp"

#include <set>

namespace cistern::report {

Living livingAfter(const std::vector<Life>& lives, std::uint64_t done,
                   const std::vector<recording::BackingChange>& sleeps) {
  Living living;
  std::set<std::uint32_t> asleep;
  for (const recording::BackingChange& change : sleeps) {
    if (change.event >= done) break;
    if (change.backed) asleep.erase(change.allocation);
    if (!change.backed) asleep.insert(change.allocation);
  }
  for (std::uint32_t number = 0; number < lives.size() && lives[number].born < done; ++number) {
    if (livesAfter(lives[number], done))
      (asleep.contains(number) ? living.asleep : living.held).push_back(number);
    if (isPendingAfter(lives[number], done)) living.pending.push_back(number);
  }
  return living;
}

namespace {

std::uint64_t bytesOf(const std::vector<Life>& lives, const std::vector<std::uint32_t>& numbers) {
  std::uint64_t bytes = 0;
  for (const std::uint32_t number : numbers) bytes += lives[number].bytes;
  return bytes;
}

}  // namespace

std::uint64_t askedBytes(const std::vector<Life>& lives, const Living& living) {
  return bytesOf(lives, living.held);
}

std::uint64_t asleepBytes(const std::vector<Life>& lives, const Living& living) {
  return bytesOf(lives, living.asleep);
}

std::uint64_t takenBytes(const std::vector<Life>& lives, const Living& living) {
  std::uint64_t bytes = 0;
  for (const std::uint32_t number : living.held) bytes += takenBytes(lives[number].bytes);
  for (const std::uint32_t number : living.pending) bytes += takenBytes(lives[number].bytes);
  return bytes;
}

}  // namespace cistern::report
