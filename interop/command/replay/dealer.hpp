// Threads that take turns: what one of them does is done before the next begins.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

namespace cistern::command {

class Dealer {
 public:
  /// Pre: threads > 0. Throws std::system_error when there is no such number of them.
  explicit Dealer(std::size_t threads);
  ~Dealer();
  Dealer(const Dealer&) = delete;
  Dealer& operator=(const Dealer&) = delete;

  /// Calls `step` `count` times, each time on the thread whose turn it is, and returns when all are
  /// done. Rethrows the exception of a step; the steps after it are not begun.
  void run(std::size_t count, const std::function<void()>& step);

 private:
  void work(std::size_t index);
  void stop() noexcept;

  const std::size_t count_;
  std::vector<std::unique_ptr<std::binary_semaphore>> turns_;
  std::binary_semaphore done_{0};
  // The thread that has the turn, or run() when none has, has these too.
  std::size_t next_ = 0;  ///< whose turn it is
  std::size_t left_ = 0;
  const std::function<void()>* step_ = nullptr;  ///< null: stop
  std::exception_ptr thrown_;
  std::vector<std::thread> threads_;
};

}  // namespace cistern::command
