#include "torch_source.hpp"

#include <utility>

#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAGuard.h>

#include "torch_allocator.hpp"

namespace cistern_torch {
namespace {

class CustomSource final : public cistern::SegmentSource {
 public:
  CustomSource(DeviceIndex device, CustomAllocator allocator)
      : device_(device), allocator_(std::move(allocator)) {}

  cistern::Result<cistern::Address> allocate(std::size_t bytes, cistern::Stream stream) override {
    const c10::cuda::CUDAGuard guard(device_);
    void* const pointer =
        allocator_->raw_alloc_with_stream(bytes, reinterpret_cast<cudaStream_t>(stream.raw));
    if (pointer != nullptr) return cistern::toAddress(pointer);
    cistern::DeviceError error;
    error.call = cistern::Call::kMalloc;
    error.kind = cistern::ErrorKind::kOutOfMemory;
    error.code = 2;
    error.name = "cudaErrorMemoryAllocation";
    error.detail = "the allocator of the MemPool returned null";
    return error;
  }
  cistern::Status free(cistern::Address address, std::size_t) override {
    const c10::cuda::CUDAGuard guard(device_);
    allocator_->raw_delete(cistern::toPointer(address));
    return {};
  }

 private:
  const DeviceIndex device_;
  const CustomAllocator allocator_;
};

}  // namespace

std::shared_ptr<cistern::SegmentSource> sourceOf(DeviceIndex device, CustomAllocator allocator) {
  if (allocator == nullptr || dynamic_cast<TorchAllocator*>(&*allocator) != nullptr) return nullptr;
  return std::make_shared<CustomSource>(device, std::move(allocator));
}

}  // namespace cistern_torch
