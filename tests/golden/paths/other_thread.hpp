// A second thread that does what it is given, one thing after the other, while the first one waits.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

namespace cistern::golden {

class OtherThread {
 public:
  OtherThread() : thread_([this] { serve(); }) {}
  ~OtherThread() {
    run([this] { over_ = true; });
    thread_.join();
  }
  OtherThread(const OtherThread&) = delete;
  OtherThread& operator=(const OtherThread&) = delete;

  /// Returns when the thread has done it.
  void run(std::function<void()> what) {
    what_ = std::move(what);
    turn_.store(kTheirs);
    turn_.notify_one();
    turn_.wait(kTheirs);
  }

 private:
  void serve() {
    while (!over_) {
      turn_.wait(kOurs);
      what_();
      turn_.store(kOurs);
      turn_.notify_one();
    }
  }

  static constexpr int kOurs = 0, kTheirs = 1;
  std::atomic<int> turn_{kOurs};
  std::function<void()> what_;
  bool over_ = false;
  std::thread thread_;  ///< the last member: it uses the others
};

}  // namespace cistern::golden
