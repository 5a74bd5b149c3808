// Work that a test does on several threads at once, and what other threads bring about.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace cistern::test {

/// Runs `body`, which may take the thread's index, on `count` threads at once, and waits for them
/// all. Throws what one of them threw.
template <class Body>
void onThreads(std::size_t count, Body body) {
  std::exception_ptr failure;
  std::mutex mutex;
  const auto run = [&](std::size_t index) {
    try {
      if constexpr (std::is_invocable_v<Body>) {
        body();
      } else {
        body(index);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

/// Whether it comes true while other threads run.
template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

}  // namespace cistern::test
