// What each thread is doing, so that a run which does not end says what it waits for.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace cistern::stress {

/// The calling thread is doing that from now on. `what` is a literal.
void doing(const char* what) noexcept;

/// From when it is made until it goes, the calling thread is seen, as `name` and `number`.
class Watched {
 public:
  Watched(const char* name, std::size_t number) noexcept;
  ~Watched();
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
};

/// Ends the program, and says what every thread is doing and for how long, unless it goes in time;
/// or before, when a thread does the same thing for longer than any takes.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(Clock::time_point at) : thread_([this, at] { wait(at); }) {}
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  void wait(Clock::time_point at);
  [[noreturn]] static void end(const char* why);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace cistern::stress
