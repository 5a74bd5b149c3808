// The driver's events: what a thread sleeps on until the GPU raises an interrupt, or until another
// thread of the program sets the event.
//
// An event that resets itself is set for one wait. It has a lock of its own, because waits hold it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <span>

#include <linux/kfd_ioctl.h>

namespace played {

class Events {
 public:
  Events() = default;
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  /// The event's number, which is its slot in the page of events too; 0 if all are used.
  std::uint32_t create(std::uint32_t type, bool resets_itself);
  bool destroy(std::uint32_t event);
  bool set(std::uint32_t event);
  bool reset(std::uint32_t event);
  /// Sets each event of memory exceptions: the process touched `address` without a mapping.
  void raiseMemoryException(const kfd_hsa_memory_exception_data& exception);

  /// Sleeps until one of the events is set, or all; KFD_IOC_WAIT_RESULT_….
  std::uint32_t wait(std::span<kfd_event_data> events, bool all, std::uint32_t milliseconds);

 private:
  struct Event {
    std::uint32_t type = 0;
    bool resets_itself = false;
    bool is_set = false;
    kfd_hsa_memory_exception_data exception{};
  };
  /// A thread in wait(): which of its events were set while it slept.
  struct Waiter {
    std::map<std::uint32_t, bool> seen;
    bool lost_one = false;  ///< an event was destroyed
    bool all = false;
    bool isDone() const;
  };

  void setLocked(std::uint32_t number, Event& event);
  bool sleep(std::unique_lock<std::mutex>& lock, const Waiter& waiter, std::uint32_t milliseconds);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint32_t, Event> events_;
  std::list<Waiter> waiters_;
};

}  // namespace played
