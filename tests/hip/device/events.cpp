#include "tests/hip/device/events.hpp"

#include <algorithm>
#include <chrono>

namespace played {

std::uint32_t Events::create(std::uint32_t type, bool resets_itself) {
  const std::lock_guard lock(mutex_);
  std::uint32_t number = 1;
  for (const auto& [used, event] : events_) {
    if (used != number) break;
    ++number;
  }
  if (number >= KFD_SIGNAL_EVENT_LIMIT) return 0;
  Event& event = events_[number];
  event.type = type;
  event.resets_itself = resets_itself;
  return number;
}

bool Events::destroy(std::uint32_t event) {
  const std::lock_guard lock(mutex_);
  if (events_.erase(event) == 0) return false;
  for (Waiter& waiter : waiters_) waiter.lost_one |= waiter.seen.contains(event);
  changed_.notify_all();
  return true;
}

// As the driver: an event that resets itself stays set only if no thread waits for it.
void Events::setLocked(std::uint32_t number, Event& event) {
  bool waited_for = false;
  for (Waiter& waiter : waiters_) {
    const auto found = waiter.seen.find(number);
    if (found == waiter.seen.end()) continue;
    found->second = true;
    waited_for = true;
  }
  event.is_set = !event.resets_itself || !waited_for;
  changed_.notify_all();
}

bool Events::set(std::uint32_t event) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end()) return false;
  setLocked(event, found->second);
  return true;
}

bool Events::reset(std::uint32_t event) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event);
  if (found == events_.end()) return false;
  found->second.is_set = false;
  return true;
}

void Events::raiseMemoryException(const kfd_hsa_memory_exception_data& exception) {
  const std::lock_guard lock(mutex_);
  for (auto& [number, event] : events_) {
    if (event.type != KFD_IOC_EVENT_MEMORY) continue;
    event.exception = exception;
    setLocked(number, event);
  }
}

bool Events::Waiter::isDone() const {
  const auto is_seen = [](const auto& event) { return event.second; };
  if (lost_one) return true;
  return all ? std::ranges::all_of(seen, is_seen) : std::ranges::any_of(seen, is_seen);
}

bool Events::sleep(std::unique_lock<std::mutex>& lock, const Waiter& waiter,
                   std::uint32_t milliseconds) {
  const auto done = [&] { return waiter.isDone(); };
  constexpr std::uint32_t kForever = 0xffffffffU;
  if (milliseconds != kForever)
    return changed_.wait_for(lock, std::chrono::milliseconds(milliseconds), done);
  changed_.wait(lock, done);
  return true;
}

std::uint32_t Events::wait(std::span<kfd_event_data> events, bool all, std::uint32_t milliseconds) {
  std::unique_lock lock(mutex_);
  Waiter waiter;
  waiter.all = all;
  for (const kfd_event_data& data : events) {
    const auto found = events_.find(data.event_id);
    if (found == events_.end()) return KFD_IOC_WAIT_RESULT_FAIL;
    waiter.seen[data.event_id] = found->second.is_set;
    if (found->second.resets_itself) found->second.is_set = false;
  }
  waiters_.push_back(waiter);
  const auto mine = std::prev(waiters_.end());
  const bool done = sleep(lock, *mine, milliseconds);
  for (kfd_event_data& data : events) {
    const auto found = events_.find(data.event_id);
    if (found == events_.end() || found->second.type != KFD_IOC_EVENT_MEMORY) continue;
    if (mine->seen[data.event_id]) data.memory_exception_data = found->second.exception;
  }
  const bool lost_one = mine->lost_one;
  waiters_.erase(mine);
  if (lost_one) return KFD_IOC_WAIT_RESULT_FAIL;
  return done ? KFD_IOC_WAIT_RESULT_COMPLETE : KFD_IOC_WAIT_RESULT_TIMEOUT;
}

}  // namespace played
