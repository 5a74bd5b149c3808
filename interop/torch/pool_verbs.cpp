// The verbs of pools, and the allocator that a torch.cuda.MemPool was given, as the source of its
// pool's segments.
#include <memory>
#include <unordered_set>
#include <utility>

#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "cistern/device.hpp"
#include "cistern/memory.hpp"
#include "cistern/segment_source.hpp"
#include "errors.hpp"
#include "releases/device_interface.hpp"
#include "torch_allocator.hpp"

namespace cistern_torch {

/// Null for none, and for Cistern's own.
std::shared_ptr<cistern::SegmentSource> sourceOf(DeviceIndex device, CustomAllocator allocator);

namespace {

class CustomSource final : public cistern::SegmentSource {
 public:
  CustomSource(DeviceIndex device, CustomAllocator allocator)
      : device_(device), allocator_(std::move(allocator)) {}

  cistern::Result<cistern::Address> allocate(std::size_t bytes, cistern::Stream stream) override {
    // One that takes its memory from Cistern, by whatever door, comes back to this pool, and would
    // for ever.
    static thread_local bool asked = false;
    if (asked) return outOfMemory("the allocator of the MemPool asks the MemPool itself");
    const Asking asking(asked);
    const c10::cuda::CUDAGuard guard(device_);
    void* const pointer =
        allocator_->raw_alloc_with_stream(bytes, reinterpret_cast<cudaStream_t>(stream.raw));
    if (pointer != nullptr) return cistern::toAddress(pointer);
    return outOfMemory("the allocator of the MemPool returned null");
  }
  // Queued work may still use it, and ncclMemFree does not wait.
  cistern::Status free(cistern::Address address, std::size_t) override {
    cistern::Device& device = cistern::allocator(device_).device();
    if (const cistern::Status idle = device.synchronizeDevice(); !idle) return idle;
    const c10::cuda::CUDAGuard guard(device_);
    allocator_->raw_delete(cistern::toPointer(address));
    return {};
  }

 private:
  struct Asking {
    explicit Asking(bool& is) : asked(is) { asked = true; }
    ~Asking() { asked = false; }
    bool& asked;
  };
  static cistern::DeviceError outOfMemory(const char* detail) {
    cistern::DeviceError error;
    error.call = cistern::Call::kMalloc;
    error.kind = cistern::ErrorKind::kOutOfMemory;
    error.code = 2;
    error.name = "cudaErrorMemoryAllocation";
    error.detail = detail;
    return error;
  }

  const DeviceIndex device_;
  const CustomAllocator allocator_;
};

}  // namespace

std::shared_ptr<cistern::SegmentSource> sourceOf(DeviceIndex device, CustomAllocator allocator) {
  if (allocator == nullptr || dynamic_cast<TorchAllocator*>(&*allocator) != nullptr) return nullptr;
  return std::make_shared<CustomSource>(device, std::move(allocator));
}

// PyTorch's verbs of pools, handed on to the device's pools.

namespace {

struct CheckpointState final : theirs::AllocatorState {
  cistern::PoolCheckpoint checkpoint;
};

// Unchanged blocks have no event.
void tellRestored(DeviceState& state, const cistern::CheckpointDelta& changed,
                  const cistern::PoolCheckpoint& now) {
  const Context context = state.history.gather(theirs::RecordContext::STATE);
  state.tellMemoryEvents(context);
  for (void* const block : changed.freed)
    state.history.freed(block, context, state.pools.anyOpen());
  const std::unordered_set<void*> made(changed.made.begin(), changed.made.end());
  for (const cistern::LiveBlock& block : now.blocks) {
    if (made.count(cistern::toPointer(block.address)) == 0) continue;
    state.history.allocated(
        {Action::ALLOC, std::size_t(block.address), std::size_t(block.requested),
         reinterpret_cast<cudaStream_t>(block.stream.raw), state.pools.nameOf(now.id)},
        context);
  }
}

}  // namespace

// A graph begins its region before the capture, on the stream that it is about to capture. So its
// filter does not catch the stream yet, as that of a scope does.
void TorchAllocator::beginAllocateToPool(DeviceIndex device, TorchPoolId pool, Filter filter) {
  CUstream_st* const on = c10::cuda::getCurrentCUDAStream(device).stream();
  const bool scope = filter(on);
  asTorch([&] {
    TorchPools& pools = at(device).pools;
    scope ? pools.beginScope(pool, std::move(filter), on)
          : pools.begin(pool, std::move(filter), on);
  });
}
void TorchAllocator::endAllocateToPool(DeviceIndex device, TorchPoolId pool) {
  asTorch([&] { at(device).pools.end(pool); });
}
void TorchAllocator::releasePool(DeviceIndex device, TorchPoolId pool) {
  asTorch([&] { at(device).pools.release(pool); });
}
int TorchAllocator::getPoolUseCount(DeviceIndex device, TorchPoolId pool) {
  return at(device).pools.uses(pool);
}
// {0, n}: a MemPool of the program's. NCCL registers the segments of one, and keeps to them until
// it is told that they are gone.
void TorchAllocator::countPool(DeviceIndex device, TorchPoolId pool, CustomAllocator allocator) {
  asTorch([&] {
    DeviceState& there = at(device);
    std::shared_ptr<cistern::SegmentSource> source = sourceOf(device, std::move(allocator));
    const bool in_pages = there.allocator.options().backing == cistern::Backing::kPages;
    if (source == nullptr && pool.first == 0 && poolsAhead() == PoolMemory::kSegments && in_pages)
      source = cistern::virtualSegments(there.allocator.device());
    there.pools.count(pool, std::move(source));
  });
}
void TorchAllocator::setLends(DeviceIndex device, TorchPoolId pool, bool lends) {
  asTorch([&] { at(device).pools.setLends(pool, lends); });
}
void TorchAllocator::setSplits(DeviceIndex device, TorchPoolId pool) {
  asTorch([&] { at(device).pools.setNoSplit(pool); });
}

bool TorchAllocator::checkPoolLiveAllocations(DeviceIndex device, TorchPoolId pool,
                                              const std::unordered_set<void*>& expected) {
  return asTorch([&] { return at(device).pools.holdsExactly(pool, expected); });
}

std::shared_ptr<theirs::AllocatorState> TorchAllocator::getCheckpointState(DeviceIndex device,
                                                                           TorchPoolId pool) {
  auto state = std::make_shared<CheckpointState>();
  asTorch([&] { state->checkpoint = at(device).pools.checkpoint(pool); });
  return state;
}

// PyTorch takes its deleters off the storages whose blocks are named freed, and puts new ones on
// those named allocated. It must be told of every block, also of unchanged ones.
theirs::CheckpointDelta TorchAllocator::setCheckpointPoolState(
    DeviceIndex device, std::shared_ptr<theirs::AllocatorState> state) {
  const auto* const wanted = dynamic_cast<CheckpointState*>(state.get());
  TORCH_CHECK(wanted != nullptr, "cistern: setCheckpointPoolState: a state of another allocator");
  DeviceState& there = at(device);
  theirs::CheckpointDelta delta;
  asTorch([&] {
    const cistern::PoolCheckpoint before = there.pools.held(wanted->checkpoint.id);
    const cistern::CheckpointDelta changed = there.pools.restore(wanted->checkpoint);
    for (const auto& block : before.blocks) {
      delta.ptrs_freed.push_back(cistern::toPointer(block.address));
      shared_.freed(delta.ptrs_freed.back());
    }
    if (there.history.listening()) tellRestored(there, changed, wanted->checkpoint);
  });
  for (const auto& block : wanted->checkpoint.blocks) {
    void* const pointer = cistern::toPointer(block.address);
    delta.dataptrs_allocd.emplace_back(pointer, pointer, raw_deleter(),
                                       c10::Device(c10::DeviceType::CUDA, device));
  }
  return delta;
}

}  // namespace cistern_torch
