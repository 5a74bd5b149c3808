#include "bench/harness/session.hpp"

#include <algorithm>
#include <chrono>

namespace cistern::bench {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

std::size_t batchOf(const Case& what, const PeerEntry& entry) {
  if (what.whole_batches) return what.batch;
  return std::max<std::size_t>(1, what.batch / entry.slow_factor);
}

Session::Session(const Case& what, const PeerEntry& entry)
    : batch_(batchOf(what, entry)), peer_(entry.open()), threads_(std::size_t(what.threads)) {
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const Stream stream = peer_->stream(what.own_streams ? i : 0);
    threads_[i].lane = what.lane(*peer_, stream);
  }
}

void Session::restart() {
  for (Thread& thread : threads_) {
    thread.nanoseconds = 0;
    thread.steps = 0;
  }
}

bool Session::run(std::size_t index) {
  Thread& thread = threads_[index];
  const auto start = Clock::now();
  const bool served = thread.lane->run(batch_);
  thread.nanoseconds += std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  thread.steps += batch_;
  return served;
}

double Session::nanosecondsPerStep() const {
  double longest = 0;
  for (const Thread& thread : threads_) {
    longest = std::max(longest, thread.nanoseconds / double(thread.steps));
  }
  return longest;
}

}  // namespace cistern::bench
