// Work that a test does on several threads at once.
#pragma once

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

}  // namespace cistern::test
