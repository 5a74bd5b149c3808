#include "allocator/device/sim/fault_plan.hpp"

#include <numeric>

#include "allocator/base/check.hpp"

namespace cistern::sim {

void PlannedFaults::failNth(Call call, std::uint64_t nth, ErrorKind kind) {
  CISTERN_CHECK(nth >= 1);
  MutexLock lock(mutex_);
  countdowns_.push_back({call, nth, kind});
}

void PlannedFaults::failNthOfAll(std::uint64_t nth, ErrorKind kind) {
  CISTERN_CHECK(nth >= 1);
  MutexLock lock(mutex_);
  countdowns_.push_back({std::nullopt, nth, kind});
}

void PlannedFaults::failAll(Call call, ErrorKind kind) {
  MutexLock lock(mutex_);
  always_[std::size_t(call)] = kind;
}

void PlannedFaults::failRandomly(double probability, std::uint64_t seed, ErrorKind kind) {
  CISTERN_CHECK(probability >= 0 && probability <= 1);
  MutexLock lock(mutex_);
  random_ = Random{probability, std::mt19937_64(seed), kind};
}

void PlannedFaults::clear() {
  MutexLock lock(mutex_);
  countdowns_.clear();
  always_.fill(std::nullopt);
  random_.reset();
}

std::uint64_t PlannedFaults::hits(Call call) const {
  MutexLock lock(mutex_);
  return hits_[std::size_t(call)];
}

std::uint64_t PlannedFaults::hits() const {
  MutexLock lock(mutex_);
  return std::accumulate(hits_.begin(), hits_.end(), std::uint64_t{0});
}

bool PlannedFaults::inAnyKind(Call call) { return call != Call::kExchangeCaptureMode; }

std::optional<ErrorKind> PlannedFaults::next(Call call) {
  MutexLock lock(mutex_);
  std::optional<ErrorKind> fault = countDown(call);
  if (!fault) fault = always_[std::size_t(call)];
  if (inAnyKind(call) && roll() && !fault) fault = random_->kind;
  if (fault) ++hits_[std::size_t(call)];
  return fault;
}

std::optional<ErrorKind> PlannedFaults::countDown(Call call) {
  std::optional<ErrorKind> fault;
  for (Countdown& countdown : countdowns_) {
    if (countdown.call ? *countdown.call != call : !inAnyKind(call)) continue;
    if (--countdown.left == 0) fault = countdown.kind;
  }
  if (fault) std::erase_if(countdowns_, [](const Countdown& c) { return c.left == 0; });
  return fault;
}

// The top 53 bits make a double in [0, 1) that is the same on every standard library, which
// std::bernoulli_distribution does not promise.
bool PlannedFaults::roll() {
  if (!random_) return false;
  return static_cast<double>(random_->source() >> 11) * 0x1p-53 < random_->probability;
}

}  // namespace cistern::sim
