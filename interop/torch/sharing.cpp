// Memory that others use: copies between devices, other devices' reach, other processes.
#include <c10/cuda/CUDAException.h>

#include "allocator.hpp"

namespace cistern_torch {

// Pages of one device are not within another's reach, so a copy between two always says which they
// are; the driver takes the direct way where there is one.
cudaError_t TorchAllocator::memcpyAsync(void* to, int to_device, const void* from, int from_device,
                                        std::size_t bytes, cudaStream_t stream, bool) {
  if (to_device == from_device)
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
  return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream);
}

void TorchAllocator::enablePeerAccess(DeviceIndex device, DeviceIndex peer) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "cistern: kernels of device ", int(device),
                              " cannot reach memory of device ", int(peer),
                              " yet; make the tensor contiguous before it is copied, or run "
                              "without cistern.torch");
}

theirs::ShareableHandle TorchAllocator::shareIpcHandle(void*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false,
                              "cistern: CUDA tensors cannot be passed to other processes yet; copy "
                              "them to the host first, or run without cistern.torch");
}

std::shared_ptr<void> TorchAllocator::getIpcDevPtr(std::string) {
  TORCH_CHECK_NOT_IMPLEMENTED(false,
                              "cistern: CUDA tensors cannot be taken from other processes yet");
}

}  // namespace cistern_torch
