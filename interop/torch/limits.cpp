// Beginning, limits, and what there is of memory.
#include <algorithm>

#include <c10/cuda/CUDAGuard.h>
#include <dlfcn.h>

#include "errors.hpp"
#include "torch_allocator.hpp"
#include "torch_pinned.hpp"

namespace cistern_torch {
namespace {

/// Whether the code lies in the library that has PyTorch's settings.
bool inSettings(const void* code) {
  Dl_info caller{};
  Dl_info settings{};
  return dladdr(code, &caller) != 0 && dladdr(&theirs::allocator, &settings) != 0 &&
         caller.dli_fbase == settings.dli_fbase;
}

}  // namespace

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
