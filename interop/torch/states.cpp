// The states of the devices, made when first asked for.
#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include "errors.hpp"
#include "history_files.hpp"
#include "torch_allocator.hpp"

namespace cistern_torch {
namespace {

bool refusedByLimit(const cistern::OutOfMemoryReport& report) {
  if (report.location == cistern::Location::kHost) return false;
  return report.limit < report.device_total && report.leastLimit() > report.limit;
}

}  // namespace

DeviceState* TorchAllocator::find(DeviceIndex device) const {
  const auto index = std::size_t(device);
  return index < kMost ? states_[index].load(std::memory_order_acquire) : nullptr;
}

DeviceState& TorchAllocator::at(DeviceIndex device) {
  if (DeviceState* const there = find(device)) [[likely]]
    return *there;
  return make(device);
}

DeviceState& TorchAllocator::make(DeviceIndex device) {
  std::unique_lock lock(mutex_);
  const int known = devices_.load();
  const int devices = known > 0 ? std::min(known, int(kMost)) : int(kMost);
  TORCH_CHECK(device >= 0 && int(device) < devices, "Invalid device argument ", int(device),
              ": cistern: devices 0 to ", devices - 1, " are allowed");
  if (DeviceState* const there = find(device)) return *there;
  uncached_.readEnvironment();
  DeviceState* const made = asTorch([&] { return new DeviceState(device, fraction_.load()); });
  made->allocator.attachOutOfMemoryObserver(
      [this, made](const cistern::OutOfMemoryReport& report) { outOfMemory(*made, report); });
  made->allocator.registerReclaimCallback([] {
    bool freed = false;
    for (const auto& name : c10::FreeCudaMemoryCallbacksRegistry()->Keys())
      freed |= c10::FreeCudaMemoryCallbacksRegistry()->Create(name)->Execute();
    return freed;
  });
  made->allocator.registerReclaimCallback([this, device] {
    const WhenShort call = when_short_.load();
    return call != nullptr && call(int(device)) != 0;
  });
  followHistory(*made);
  HistoryFiles::theOne().follow(int(device), made->allocator);
  const std::uint64_t overflow = overflow_.load();
  const std::string refused = overflow != 0 ? made->overflowInto(overflow) : "";
  states_[std::size_t(device)].store(made, std::memory_order_release);
  const bool tracked = !trackers_.empty();
  lock.unlock();  // a warning, or a tracker, may run the program's code
  if (tracked) made->tellTrackersOfMemory();
  if (!refused.empty()) TORCH_WARN("cistern: device ", int(device), " has no overflow: ", refused);
  return *made;
}

DeviceState* TorchAllocator::ownerOf(void* pointer) const {
  for (const auto& slot : states_) {
    DeviceState* const state = slot.load(std::memory_order_acquire);
    if (state != nullptr && state->allocator.owns(pointer)) return state;
  }
  return nullptr;
}

void TorchAllocator::followHistory(DeviceState& state) {
  for (const auto& tracker : trackers_) state.history.addTracker(tracker);
  if (history_.enabled) state.history.set(history_, false);
  state.follow();
}

// As in PyTorch a request that is rejected has no event and calls no out-of-memory observer.
void TorchAllocator::rejected(DeviceState& state, const cistern::OutOfMemoryReport& report) {
  ++state.rejections;
  std::vector<RejectionObserver> observers;
  {
    const std::lock_guard lock(mutex_);
    observers = rejection_observers_;
  }
  for (const auto& observer : observers) {
    try {
      observer(state.device, std::size_t(report.requested), std::size_t(report.reserved),
               std::size_t(report.device_total));
    } catch (const std::exception& error) {
      TORCH_WARN("cistern: an observer of rejected requests has failed: ", error.what());
    }
  }
}

void TorchAllocator::outOfMemory(DeviceState& state, const cistern::OutOfMemoryReport& report) {
  if (limitRejects() && refusedByLimit(report)) return rejected(state, report);
  std::vector<theirs::OutOfMemoryObserver> observers;
  {
    const std::lock_guard lock(mutex_);
    observers = out_of_memory_observers_;
  }
  if (state.history.listening()) {
    const Context context = state.history.gather(theirs::RecordContext::ALLOC);
    state.tellMemoryEvents(context);
    state.history.add(
        {Action::OOM, std::size_t(report.device_free), std::size_t(report.requested),
         reinterpret_cast<cudaStream_t>(report.stream.raw), state.pools.nameOf(report.pool)},
        context);
  }
  c10::reportOutOfMemoryToProfiler(std::int64_t(report.requested), std::size_t(report.allocated),
                                   std::size_t(report.reserved),
                                   c10::Device(c10::DeviceType::CUDA, state.device));
  const std::uint64_t allowed = std::min(report.limit, report.device_total);
  for (const auto& observer : observers) {
    observer(state.device, std::size_t(report.requested), std::size_t(allowed),
             std::size_t(report.device_free));
  }
}

}  // namespace cistern_torch
