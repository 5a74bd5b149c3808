#include "interop/report/living.hpp"

namespace cistern::report {

Living livingAfter(const std::vector<Life>& lives, std::uint64_t done) {
  Living living;
  for (std::uint32_t number = 0; number < lives.size() && lives[number].born < done; ++number) {
    if (livesAfter(lives[number], done)) living.held.push_back(number);
    if (isPendingAfter(lives[number], done)) living.pending.push_back(number);
  }
  return living;
}

std::uint64_t askedBytes(const std::vector<Life>& lives, const Living& living) {
  std::uint64_t bytes = 0;
  for (const std::uint32_t number : living.held) bytes += lives[number].bytes;
  return bytes;
}

std::uint64_t takenBytes(const std::vector<Life>& lives, const Living& living) {
  std::uint64_t bytes = 0;
  for (const std::uint32_t number : living.held) bytes += takenBytes(lives[number].bytes);
  for (const std::uint32_t number : living.pending) bytes += takenBytes(lives[number].bytes);
  return bytes;
}

}  // namespace cistern::report
