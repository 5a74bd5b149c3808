#include "torch_source.hpp"

#include <utility>

#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAGuard.h>

#include "cistern/device.hpp"
#include "cistern/memory.hpp"
#include "torch_allocator.hpp"

namespace cistern_torch {
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

}  // namespace cistern_torch
