// A thread that does small pieces of work when it is told that there are some. It is started when
// first needed, and stops, between two pieces, when its owner goes.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace cistern::pages {

class Background {
 public:
  enum class Next { kNothing, kMore, kLater };

  /// `piece` does one piece of work, on the thread, and says what comes next: nothing until wake(),
  /// more at once, or more in a while.
  explicit Background(std::function<Next()> piece) : piece_(std::move(piece)) {}
  ~Background() { stop(); }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// There is work. Never throws; false when no thread can be had, or it was stopped.
  bool wake() noexcept;
  /// Returns when the piece at hand is done. No piece runs after it.
  void stop() noexcept;

 private:
  void run();

  const std::function<Next()> piece_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool awake_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace cistern::pages
