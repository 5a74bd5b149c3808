// The calls that history.py times: those of PyTorch's allocator interface, by C++, so that no time
// of Python's is in them. Compiled by history.py against the installed PyTorch, for each allocator
// the same.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <thread>
#include <vector>

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include "cistern/memory.hpp"

namespace {

using Clock = std::chrono::steady_clock;
namespace theirs = c10::cuda::CUDACachingAllocator;

std::vector<void*> held;
std::thread watcher;
std::atomic<bool> watching{false};
double longest_ns = 0;

double nsSince(Clock::time_point begun) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begun).count();
}

void pair(theirs::CUDAAllocator& allocator, std::size_t bytes) {
  allocator.raw_delete(allocator.raw_alloc(bytes));
}

template <class Allocator>
void takeSnapshot(Allocator& allocator) {
  if constexpr (requires { allocator.snapshot({0, 0}, false); })
    (void)allocator.snapshot({0, 0}, false);
  else
    (void)allocator.snapshot({0, 0});
}

void watch(std::size_t bytes) {
  c10::cuda::set_device(0);
  auto& allocator = *theirs::get();
  for (int i = 0; i < 1000; ++i) pair(allocator, bytes);
  longest_ns = 0;
  watching = true;
  auto last = Clock::now();
  while (watching) {
    pair(allocator, bytes);
    longest_ns = std::max(longest_ns, nsSince(last));
    last = Clock::now();
  }
}

}  // namespace

extern "C" {

/// The nanoseconds of an allocation and its free: of so many in kParts parts, those of the quickest
/// part. A machine that others use only ever adds time.
double history_pairs(std::size_t count, std::size_t bytes) {
  constexpr std::size_t kParts = 100;
  auto& allocator = *theirs::get();
  double least = INFINITY;
  for (std::size_t part = 0; part < kParts; ++part) {
    const auto begun = Clock::now();
    for (std::size_t i = 0; i < count / kParts; ++i) pair(allocator, bytes);
    least = std::min(least, nsSince(begun) / double(count / kParts));
  }
  return least;
}

void history_hold(std::size_t count, std::size_t bytes) {
  for (std::size_t i = 0; i < count; ++i) held.push_back(theirs::get()->raw_alloc(bytes));
}
void history_let_go() {
  for (void* const block : held) theirs::get()->raw_delete(block);
  held.clear();
}

/// The nanoseconds of a snapshot without events, as PyTorch's interface gives it.
double history_snapshot() {
  const auto begun = Clock::now();
  takeSnapshot(*theirs::get());
  return nsSince(begun);
}
/// The nanoseconds of a snapshot of Cistern's own.
double history_own_snapshot() {
  const auto begun = Clock::now();
  (void)cistern::allocator(0).snapshot();
  return nsSince(begun);
}

/// Another thread allocates and frees until history_watched(), which returns the longest time that
/// it took for a pair, in nanoseconds.
void history_watch(std::size_t bytes) {
  watcher = std::thread(watch, bytes);
  while (!watching) std::this_thread::yield();
}
double history_watched() {
  watching = false;
  watcher.join();
  return longest_ns;
}

}  // extern "C"
