#include "tests/hip/device/queue.hpp"

#include <algorithm>

#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>

#include "tests/hip/device/clock.hpp"
#include "tests/hip/device/settings.hpp"
#include "tests/hip/device/topology.hpp"

namespace played {
namespace {

// Queues are differently late, so that work on two of them does not happen to end in its order.
std::uint64_t lagOf(std::uint32_t queue) { return settings().lag_ns * (1 + queue % 3); }

amd_signal_t* signalAt(Memory& memory, int gpu, std::uint64_t signal) {
  return reinterpret_cast<amd_signal_t*>(
      memory.at(gpu, signal, sizeof(amd_signal_t), Access::kWrite));
}

}  // namespace

bool Queue::step() {
  if (stopped_) return false;
  try {
    if (!finish_) return next();
    if (nowNs() < ends_) return false;
    const std::function<void()> finish = std::move(finish_);
    finish_ = nullptr;
    finish();
    return true;
  } catch (const PageFault& fault) {
    stop(fault);
    return true;
  }
}

void Queue::beginNow() { began_ = nowNs(); }

void Queue::begin(std::function<void()> finish, std::uint64_t longer_ns) {
  beginNow();
  ends_ = began_ + std::max(lagOf(place_.number), longer_ns);
  finish_ = std::move(finish);
}

std::uint64_t Queue::beganTicks() const { return gpuTicks(began_); }

std::byte* Queue::inRing(std::uint64_t position, std::uint64_t bytes) {
  return memory_.at(place_.gpu, place_.ring + position % place_.ring_bytes, bytes, Access::kWrite);
}

std::int64_t Queue::loadSignal(std::uint64_t signal) {
  return __atomic_load_n(&signalAt(memory_, place_.gpu, signal)->value, __ATOMIC_ACQUIRE);
}

// The program may end the signal as soon as it is counted down, so all else is read and written
// before.
void Queue::complete(std::uint64_t signal) {
  if (signal == 0) return;
  amd_signal_t* const counted = signalAt(memory_, place_.gpu, signal);
  const std::uint64_t mailbox = counted->event_mailbox_ptr;
  const std::uint32_t event = counted->event_id;
  PLAYED_TRACE("queue %u counts down signal 0x%llx, at %lld; event %u", place_.number,
               static_cast<unsigned long long>(signal), static_cast<long long>(counted->value),
               mailbox == 0 ? 0 : event);
  counted->start_ts = beganTicks();
  counted->end_ts = gpuTicks(nowNs());
  __atomic_fetch_sub(&counted->value, 1, __ATOMIC_ACQ_REL);
  if (mailbox == 0) return;
  std::byte* const slot = memory_.at(place_.gpu, mailbox, sizeof(std::uint64_t), Access::kWrite);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(slot), event, __ATOMIC_RELEASE);
  (void)events_.set(event);
}

void Queue::stop(const PageFault& fault) {
  stopped_ = true;
  finish_ = nullptr;
  complain("page fault: GPU %d has mapped no memory at 0x%llx, where queue %u %s: %s", place_.gpu,
           static_cast<unsigned long long>(fault.address), place_.number,
           fault.writes ? "writes" : "reads", what_.c_str());
  kfd_hsa_memory_exception_data exception{};
  exception.failure.NotPresent = 1;
  exception.va = fault.address;
  exception.gpu_id = gpuId(place_.gpu);
  events_.raiseMemoryException(exception);
}

}  // namespace played
