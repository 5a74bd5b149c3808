// The GPUs' engine: one thread, which steps through the queues of this process.
//
// No interrupt tells it that the program wrote a packet, because that is a store to memory. So it
// looks again and again: at once after it found something, then at growing intervals.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include <linux/kfd_ioctl.h>

#include "tests/hip/device/events.hpp"
#include "tests/hip/device/memory.hpp"
#include "tests/hip/device/queue.hpp"

namespace played {

class Engine {
 public:
  /// `mutex` guards the memory and the queues.
  Engine(std::mutex& mutex, Memory& memory, Events& events)
      : mutex_(mutex), memory_(memory), events_(events) {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Pre: the mutex is held.
  /// Gives the queue its number; the first one starts the thread. False if there is no such kind.
  bool create(int gpu, kfd_ioctl_create_queue_args& wanted);
  bool destroy(std::uint32_t queue);
  bool exists(std::uint32_t queue) const { return queues_.contains(queue); }

 private:
  void run();
  bool stepAll();
  std::uint64_t nextEnd() const;

  std::mutex& mutex_;
  Memory& memory_;
  Events& events_;
  std::map<std::uint32_t, std::unique_ptr<Queue>> queues_;
  std::uint32_t last_number_ = 0;
  bool running_ = false;
};

}  // namespace played
