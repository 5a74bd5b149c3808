// Blocks: what every tensor comes to.
//
//   allocate, raw_alloc…  -> take: the pool's region, if one is open; Cistern's allocate
//                            takeListening instead, while someone records or profiles
//   raw_delete            -> giveBack, if it is a block; the deleter of tensors calls that at once
//   giveBack              -> Cistern's free, which finds the device by the address
#include <algorithm>
#include <optional>

#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <pthread.h>

#include "errors.hpp"
#include "torch_allocator.hpp"
#include "torch_pinned.hpp"

namespace cistern_torch {
namespace {

std::atomic<TorchAllocator*> the_allocator{nullptr};

/// In a child of fork whose parent may have had memory. Another thread of the parent may have held
/// the locks of its histories and pools, and the child's frees are no events of its own.
bool in_child_of_fork = false;

/// The deleter that a tensor's storage keeps.
void freeBlock(void* pointer) { the_allocator.load(std::memory_order_relaxed)->giveBack(pointer); }

/// Nothing for a pointer that is no allocated block's.
std::optional<std::size_t> sizeOf(const DeviceState* state, void* pointer) {
  try {
    if (state != nullptr) return state->allocator.blockSize(pointer);
  } catch (const cistern::InvalidArgument&) {  // not allocated
  }
  return std::nullopt;
}

DeviceIndex currentDevice() {
  DeviceIndex device = 0;
  C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
  return device;
}

}  // namespace

bool inChildOfFork() { return in_child_of_fork; }

TorchAllocator* installed() { return the_allocator.load(std::memory_order_acquire); }
void setInstalled(TorchAllocator* allocator) {
  (void)pinned();  // made by now, so that no thread makes it during a fork
  the_allocator.store(allocator, std::memory_order_release);
  (void)pthread_atfork(nullptr, nullptr, [] {
    in_child_of_fork = !installed()->untouched() || !pinned().untouched();
  });
}

bool TorchAllocator::untouched() const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  const auto made = [](const auto& state) { return state.load() != nullptr; };
  return lock.owns_lock() && std::none_of(states_.begin(), states_.end(), made);
}

c10::DeleterFnPtr TorchAllocator::raw_deleter() const { return &freeBlock; }

c10::DataPtr TorchAllocator::allocate(std::size_t bytes) {
  const DeviceIndex device = currentDevice();
  void* const pointer = take(bytes, device, c10::cuda::getCurrentCUDAStream(device));
  return {pointer, pointer, &freeBlock, c10::Device(c10::DeviceType::CUDA, device)};
}

void* TorchAllocator::raw_alloc(std::size_t bytes) {
  const DeviceIndex device = currentDevice();
  return take(bytes, device, c10::cuda::getCurrentCUDAStream(device));
}

void* TorchAllocator::raw_alloc_with_stream(std::size_t bytes, cudaStream_t stream) {
  return take(bytes, currentDevice(), stream);
}

void* TorchAllocator::take(std::size_t bytes, DeviceIndex device, cudaStream_t stream) {
  if (bytes == 0) return nullptr;
  DeviceState& state = at(device);
  if (uncached_.wanted()) [[unlikely]]
    return uncached_.allocate(bytes);
  const bool told = state.history.listening() || c10::memoryProfilingEnabled() ||
                    c10::impl::GPUTrace::get_trace() != nullptr;
  if (told && !in_child_of_fork) [[unlikely]]
    return takeListening(state, bytes, stream);
  return asTorch([&] {
    state.pools.expect(stream);
    return state.allocator.allocate(bytes, stream);
  });
}

void* TorchAllocator::takeListening(DeviceState& state, std::size_t bytes, cudaStream_t stream) {
  Context context = state.history.gather(theirs::RecordContext::STATE);
  state.history.tellEndedUses(state.pools.anyOpen());
  TorchPoolId pool{0, 0};
  void* const pointer = asTorch([&] {
    state.pools.expect(stream);
    pool = state.pools.nameOf(state.allocator.poolFor(stream));
    return state.allocator.allocate(bytes, stream);
  });
  state.tellMemoryEvents(context);
  state.history.allocated({Action::ALLOC, std::size_t(pointer), bytes, stream, pool},
                          std::move(context));
  if (c10::memoryProfilingEnabled())
    tellProfiler(state, pointer, std::int64_t(state.allocator.blockSize(pointer)));
  const c10::impl::PyInterpreter* const trace = c10::impl::GPUTrace::get_trace();
  if (trace != nullptr)
    (*trace)->trace_gpu_memory_allocation(c10::kCUDA, reinterpret_cast<std::uintptr_t>(pointer));
  return pointer;
}

void TorchAllocator::tellProfiler(DeviceState& state, void* pointer, std::int64_t bytes) {
  const cistern::MemoryStats now = state.allocator.memoryStats();
  c10::reportMemoryUsageToProfiler(pointer, bytes,
                                   std::size_t(now[cistern::Stat::kAllocatedBytes].current),
                                   std::size_t(now[cistern::Stat::kReservedBytes].current),
                                   c10::Device(c10::DeviceType::CUDA, state.device));
}

// Tensors do not come here: their destructors cannot throw.
void TorchAllocator::raw_delete(void* pointer) {
  const bool checked = pointer != nullptr && !in_child_of_fork && !uncached_.holds(pointer);
  TORCH_CHECK(!checked || sizeOf(ownerOf(pointer), pointer), "invalid device pointer: ", pointer,
              " (cistern: free: it is no allocated block's)");
  giveBack(pointer);
}

void TorchAllocator::giveBack(void* pointer) {
  if (pointer == nullptr || uncached_.free(pointer)) return;
  shared_.freed(pointer);
  const c10::impl::PyInterpreter* const trace = c10::impl::GPUTrace::get_trace();
  if (trace != nullptr) [[unlikely]]
    (*trace)->trace_gpu_memory_deallocation(c10::kCUDA, reinterpret_cast<std::uintptr_t>(pointer));
  const bool told = !in_child_of_fork &&
                    (listening_.load(std::memory_order_relaxed) || c10::memoryProfilingEnabled());
  DeviceState* const state = told ? ownerOf(pointer) : nullptr;
  const std::optional<std::size_t> bytes = sizeOf(state, pointer);
  if (!bytes) [[likely]]
    return cistern::free(pointer);
  state->history.freed(pointer, state->history.gather(theirs::RecordContext::ALL),
                       state->pools.anyOpen());
  if (!state->history.listening() && !state->history.holdsStacks()) {
    const std::lock_guard lock(mutex_);
    followFrees();
  }
  cistern::free(pointer);
  state->tellMemoryEvents(nullptr);
  if (c10::memoryProfilingEnabled()) tellProfiler(*state, pointer, -std::int64_t(*bytes));
}

// Memory that is not from the cache, for example a tensor in another program's memory, needs no
// care here.
void TorchAllocator::recordStream(const c10::DataPtr& block, c10::cuda::CUDAStream stream) {
  if (block.get() == nullptr || block.get_deleter() != &freeBlock) return;
  void* const start = block.get_context();
  if (uncached_.holds(start)) return;
  if (listening_.load(std::memory_order_relaxed) && !in_child_of_fork) [[unlikely]] {
    DeviceState* const state = ownerOf(start);
    if (state != nullptr && state->history.listening())
      state->history.used(start, stream.stream(), state->allocator.device());
  }
  asTorch([&] { cistern::recordStream(start, stream.stream()); });
}

void TorchAllocator::copy_data(void* to, const void* from, std::size_t bytes) const {
  C10_CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice));
}

void TorchAllocator::enable(bool value) { uncached_.switchOff(!value); }
bool TorchAllocator::isEnabled() const { return !uncached_.switchedOff(); }

}  // namespace cistern_torch
