#include "tests/hip/device/engine.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>
#include <thread>

#include <sched.h>

#include "tests/hip/device/aql_queue.hpp"
#include "tests/hip/device/clock.hpp"
#include "tests/hip/device/sdma_queue.hpp"

namespace played {
namespace {

std::unique_ptr<Queue> queueOf(std::uint32_t type, const QueuePlace& place, Memory& memory,
                               Events& events) {
  if (type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL)
    return std::make_unique<AqlQueue>(place, memory, events);
  if (type == KFD_IOC_QUEUE_TYPE_SDMA) return std::make_unique<SdmaQueue>(place, memory, events);
  return nullptr;
}

std::atomic<std::uint64_t>* counterAt(std::uint64_t address) {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(address);
}

void sleepFor(std::uint64_t nanoseconds) {
  const timespec time{time_t(nanoseconds / 1'000'000'000), long(nanoseconds % 1'000'000'000)};
  (void)nanosleep(&time, nullptr);
}

// How often an idle engine looks: a program that has just made it work will do so again soon.
std::uint64_t patience(std::uint64_t idle_ns) {
  if (idle_ns < 50'000) return 0;
  if (idle_ns < 5'000'000) return 20'000;
  return idle_ns < 1'000'000'000 ? 100'000 : 1'000'000;
}

}  // namespace

bool Engine::create(int gpu, kfd_ioctl_create_queue_args& wanted) {
  const QueuePlace place{last_number_ + 1,
                         gpu,
                         wanted.ring_base_address,
                         wanted.ring_size,
                         counterAt(wanted.read_pointer_address),
                         counterAt(wanted.write_pointer_address)};
  std::unique_ptr<Queue> queue = queueOf(wanted.queue_type, place, memory_, events_);
  if (queue == nullptr) return false;
  wanted.queue_id = ++last_number_;
  queues_[wanted.queue_id] = std::move(queue);
  if (!running_) {
    running_ = true;
    // The program's signals are for its own threads.
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { run(); }).detach();
    (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  return true;
}

bool Engine::destroy(std::uint32_t queue) { return queues_.erase(queue) != 0; }

bool Engine::stepAll() {
  bool any = false;
  for (const auto& [number, queue] : queues_) any |= queue->step();
  return any;
}

std::uint64_t Engine::nextEnd() const {
  std::uint64_t first = 0;
  for (const auto& [number, queue] : queues_) {
    const std::uint64_t end = queue->busyUntil();
    if (end != 0 && (first == 0 || end < first)) first = end;
  }
  return first;
}

void Engine::run() {
  std::uint64_t last_work = nowNs();
  for (;;) {
    std::uint64_t end = 0;
    bool worked = false;
    {
      const std::lock_guard lock(mutex_);
      worked = stepAll();
      end = nextEnd();
    }
    const std::uint64_t now = nowNs();
    if (worked) {
      last_work = now;
      continue;
    }
    std::uint64_t pause = patience(now - last_work);
    if (end != 0) pause = std::min(pause, end > now ? end - now : 0);
    if (pause == 0) {
      (void)sched_yield();
    } else {
      sleepFor(pause);
    }
  }
}

}  // namespace played
