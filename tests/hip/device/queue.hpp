// A queue of a GPU: packets in a ring, which the program writes and the GPU reads in order.
//
// A packet that does something takes time. It begins when what it waits for has come, and what it
// does is done at its end, all at once. So memory that the program takes away too early, or work
// that is not ordered behind it, is seen.
//
// Under the lock of the process's state (process.hpp).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "tests/hip/device/events.hpp"
#include "tests/hip/device/memory.hpp"

namespace played {

/// As the program asked for it, with addresses of the GPU's.
struct QueuePlace {
  std::uint32_t number = 0;
  int gpu = 0;
  std::uint64_t ring = 0;
  std::uint64_t ring_bytes = 0;
  std::atomic<std::uint64_t>* read = nullptr;
  std::atomic<std::uint64_t>* written = nullptr;
};

class Queue {
 public:
  Queue(const QueuePlace& place, Memory& memory, Events& events)
      : place_(place), memory_(memory), events_(events) {}
  virtual ~Queue() = default;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// Does what can be done now; true if that was anything. A page fault stops the queue for good.
  bool step();
  /// When the packet under way ends; 0 if there is none.
  std::uint64_t busyUntil() const { return finish_ ? ends_ : 0; }

 protected:
  /// Looks at the packet that is next. False if there is none, or if it has to wait.
  virtual bool next() = 0;

  /// The packet under way: `finish` is called when it has taken as long as a packet takes at least,
  /// and `longer_ns` if that is more.
  void begin(std::function<void()> finish, std::uint64_t longer_ns = 0);
  /// What the packet is, for the message of a page fault.
  void name(std::string what) { what_ = std::move(what); }
  /// For a packet that takes no time.
  void beginNow();
  std::uint64_t beganTicks() const;

  /// The part of the ring at `position`, which the packet does not leave.
  std::byte* inRing(std::uint64_t position, std::uint64_t bytes);
  /// A signal's value, as the GPU reads it.
  std::int64_t loadSignal(std::uint64_t signal);
  /// Counts the signal down, with the times of the work, and raises its interrupt.
  void complete(std::uint64_t signal);

  const QueuePlace place_;
  Memory& memory_;
  Events& events_;

 private:
  void stop(const PageFault& fault);

  std::function<void()> finish_;
  std::string what_ = "packet";
  std::uint64_t began_ = 0;
  std::uint64_t ends_ = 0;
  bool stopped_ = false;
};

}  // namespace played
