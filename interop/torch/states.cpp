// The states of the devices, made when first asked for.
#include <algorithm>
#include <mutex>
#include <string>
#include <utility>

#include <c10/cuda/CUDAGuard.h>
#include <dlfcn.h>

#include "errors.hpp"
#include "recorder.hpp"
#include "torch_allocator.hpp"
#include "torch_pinned.hpp"

namespace cistern_torch {
static bool refusedByLimit(const cistern::OutOfMemoryReport& report) {
  if (report.location == cistern::Location::kHost) return false;
  return report.limit < report.device_total && report.leastLimit() > report.limit;
}

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

// Beginning, limits, and what there is of memory.

/// Whether the code lies in the library that has PyTorch's settings.
static bool inSettings(const void* code) {
  Dl_info caller{};
  Dl_info settings{};
  return dladdr(code, &caller) != 0 && dladdr(&theirs::allocator, &settings) != 0 &&
         caller.dli_fbase == settings.dli_fbase;
}

// A setting `backend:…` must name the allocator in use, or PyTorch stops the program. So its
// settings, which alone ask from that library, get the name that they have chosen themselves.
std::string TorchAllocator::name() {
  return inSettings(__builtin_return_address(0)) ? chosen_ : "cistern";
}

void TorchAllocator::init(int devices) {
  fraction_.store(fractionOfSettings());
  devices_.store(devices);
}
bool TorchAllocator::initialized() { return devices_.load() > 0; }

double TorchAllocator::getMemoryFraction(DeviceIndex device) {
  return asTorch([&] {
    cistern::CachingAllocator& allocator = at(device).allocator;
    const double total = double(allocator.getMemoryInfo().orThrow().total_bytes);
    return std::min(1.0, double(allocator.limit()) / total);
  });
}

void TorchAllocator::setMemoryFraction(double fraction, DeviceIndex device) {
  asTorch([&] { at(device).limitTo(fraction); });
}

void DeviceState::limitTo(double fraction) {
  fraction == 0 ? allocator.setLimit(0) : allocator.setMemoryFraction(fraction);
}

std::string DeviceState::overflowInto(std::uint64_t host_bytes) {
  try {
    allocator.setOverflow(host_bytes);
    return "";
  } catch (const cistern::InvalidArgument& refused) {
    return refused.what();
  }
}

// A limit of Cistern's own (CISTERN_CONF) that is lower stays.
void DeviceState::keepTo(double fraction) {
  if (fraction >= 1) return;
  const std::uint64_t before = allocator.limit();
  limitTo(fraction);
  if (before < allocator.limit()) allocator.setLimit(before);
}

// cuDNN's benchmark asks for the largest possible workspace: the device's memory, or the largest
// block that lies free. PyTorch hands in its largest value so far.
void TorchAllocator::cacheInfo(DeviceIndex device, std::size_t* largest_block) {
  asTorch([&] {
    cistern::CachingAllocator& allocator = at(device).allocator;
    if (*largest_block == 0)
      *largest_block = std::size_t(allocator.getMemoryInfo().orThrow().free_bytes);
    *largest_block =
        std::max(*largest_block, std::size_t(allocator.cacheInfo().largest_free_block));
  });
}

void* TorchAllocator::getBaseAllocation(void* pointer, std::size_t* bytes) {
  DeviceState* const state = ownerOf(pointer);
  TORCH_CHECK(state != nullptr, "cistern: getBaseAllocation: ", pointer, " is no block of ours");
  return asTorch([&] {
    const cistern::BaseAllocation base = state->allocator.getBaseAllocation(pointer);
    if (bytes != nullptr) *bytes = base.bytes;
    return base.base;
  });
}

// Earlier events in the background are reported first, because they do not belong to the caller's
// stack.
void TorchAllocator::emptyCache(TorchPoolId pool) {
  everywhere([&](DeviceState& state) {
    const bool listening = state.history.listening();
    if (listening) state.tellMemoryEvents(nullptr);
    const Context context = state.history.gather(theirs::RecordContext::ALL);
    asTorch([&] { state.pools.emptyCache(pool); });
    if (listening) state.tellMemoryEvents(context);
  });
  pinned().settle();
}

}  // namespace cistern_torch
