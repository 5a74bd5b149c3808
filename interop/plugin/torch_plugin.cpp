// The functions that torch.cuda.memory.CUDAPluggableAllocator takes by name: PyTorch's plug-in
// interface over the allocators that the process shares. PyTorch decides the signatures, and which
// arguments may be null.
//
// PyTorch does not check for null: a request that fails must throw. The exception reaches the
// program as a RuntimeError with its text.
#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "allocator/base/mutex.hpp"
#include "cistern/memory.hpp"
#include "interop/torch/torch_pools.hpp"

namespace cistern {
namespace {

using cistern_torch::Filter;
using cistern_torch::TorchPoolId;
using cistern_torch::TorchPools;

// Each device has one, made at its first use and never destroyed.
TorchPools& poolsOf(int device) {
  static std::array<std::atomic<TorchPools*>, 64> made{};
  static Mutex making{LockRank::kTorchPools};
  Pools& pools = cistern::pools(device);  // refuses other devices
  std::atomic<TorchPools*>& slot = made[std::size_t(device)];
  if (TorchPools* const there = slot.load(std::memory_order_acquire)) return *there;
  const MutexLock lock(making);
  if (slot.load(std::memory_order_acquire) == nullptr)
    slot.store(new TorchPools(pools), std::memory_order_release);
  return *slot.load(std::memory_order_acquire);
}

// PyTorch calls these where it cannot take an exception.
template <class Verb>
void quietly(const char* name, Verb verb) noexcept {
  try {
    verb();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "cistern: %s: %s\n", name, failure.what());
  }
}

}  // namespace
}  // namespace cistern

extern "C" {

/// `bytes` of the device for use on the stream; null for 0 bytes. Throws what
/// CachingAllocator::allocate does.
CISTERN_API void* cistern_torch_plugin_malloc(std::size_t bytes, int device, CUstream_st* stream) {
  cistern::poolsOf(device).expect(stream);
  return cistern::allocator(device).allocate(bytes, stream);
}

CISTERN_API void cistern_torch_plugin_free(void* pointer, std::size_t, int, CUstream_st*) {
  cistern::free(pointer);
}

CISTERN_API void cistern_torch_plugin_init(int) {}

/// PyTorch's emptyCache.
CISTERN_API void cistern_torch_plugin_reset() {
  cistern::quietly("reset", [] { cistern::poolsOf(cistern::currentDevice()).emptyCache({0, 0}); });
}

CISTERN_API void cistern_torch_plugin_set_memory_fraction(double fraction, int device) {
  cistern::allocator(device).setMemoryFraction(fraction);
}

CISTERN_API void* cistern_torch_plugin_base_allocation(void* pointer, std::size_t* bytes) {
  const auto base = cistern::allocator().getBaseAllocation(pointer);
  if (bytes != nullptr) *bytes = base.bytes;
  return base.base;
}

CISTERN_API void cistern_torch_plugin_record_stream(void* pointer, CUstream_st* stream) {
  if (pointer != nullptr) cistern::recordStream(pointer, stream);
}

/// Null, or why the stream could not be registered: until the thread's next call.
CISTERN_API const char* cistern_torch_plugin_register_stream(int device, CUstream_st* stream) {
  static thread_local std::string why;
  try {
    cistern::CachingAllocator& allocator = cistern::allocator(device);
    allocator.registerStream(cistern::Stream{});
    allocator.registerStream(stream);
    return nullptr;
  } catch (const std::exception& error) {
    why = error.what();
    return why.c_str();
  }
}

CISTERN_API void cistern_torch_plugin_begin_allocate_to_pool(int device,
                                                             cistern_torch::TorchPoolId pool,
                                                             cistern_torch::Filter filter) {
  cistern::poolsOf(device).begin(pool, std::move(filter));
}

CISTERN_API void cistern_torch_plugin_end_allocate_to_pool(int device,
                                                           cistern_torch::TorchPoolId pool) {
  cistern::poolsOf(device).end(pool);
}

CISTERN_API void cistern_torch_plugin_release_pool(int device, cistern_torch::TorchPoolId pool) {
  cistern::quietly("release_pool", [&] { cistern::poolsOf(device).release(pool); });
}
}
