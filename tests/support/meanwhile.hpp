// What another thread does while the device is in a call.
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "tests/support/interposed_device.hpp"

namespace cistern::test {

/// Does `what` on a thread of its own as soon as the device is asked for `call`, once. That call
/// goes on some time after `what` has begun. The device's hook is its own as long as it lives.
class Meanwhile {
 public:
  Meanwhile(InterposedDevice& device, Call call, std::function<void()> what)
      : device_(device), what_(std::move(what)) {
    device_.before = [this, call](Call made) {
      if (made == call && !met_.exchange(true)) start();
    };
  }
  ~Meanwhile() {
    wait();
    device_.before = nullptr;
  }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

  /// Until it is done. False when there was no such call.
  bool wait() {
    if (thread_.joinable()) thread_.join();
    return met_;
  }

 private:
  void start() {
    thread_ = std::thread([this] {
      begun_ = true;
      what_();
    });
    while (!begun_) std::this_thread::yield();
    for (int i = 0; i < 1'000; ++i) std::this_thread::yield();
  }

  InterposedDevice& device_;
  const std::function<void()> what_;
  std::atomic<bool> met_{false}, begun_{false};
  std::thread thread_;
};

}  // namespace cistern::test
