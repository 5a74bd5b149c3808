// Memory that others use: copies between devices, other devices' reach, other processes.
//
// A block in pages is shared by descriptors (interop/sharing). A block in a cudaMalloc is shared by
// CUDA's handle of the whole malloc. Blocks lie there if caching is switched off, memory comes in
// segments, or a pool has an allocator of its own.
#include <cstring>
#include <map>

#include <c10/cuda/CUDAException.h>

#include "errors.hpp"
#include "torch_allocator.hpp"
#include "torch_texts.hpp"

namespace cistern_torch {
namespace {

constexpr const char* kMalloc = "cistern-malloc ";

theirs::ShareableHandle shareMalloc(void* base, std::size_t offset) {
  cudaIpcMemHandle_t handle{};
  C10_CUDA_CHECK(cudaIpcGetMemHandle(&handle, base));
  std::string text = kMalloc;
  text.append(reinterpret_cast<const char*>(&handle), sizeof(handle));
  return {std::ptrdiff_t(offset), std::move(text)};
}

void closeMalloc(DeviceIndex device, void* base) {
  const c10::DeviceGuard guard({c10::kCUDA, device});
  C10_CUDA_CHECK_WARN(cudaIpcCloseMemHandle(base));
}

/// CUDA opens a malloc of another process once for each device.
std::shared_ptr<void> openMalloc(DeviceIndex device, const std::string& text) {
  static auto* const mutex = new std::mutex;
  static auto* const opened = new std::map<std::string, std::weak_ptr<void>>;
  const std::lock_guard lock(*mutex);
  std::weak_ptr<void>& known = (*opened)[std::to_string(device) + text];
  if (std::shared_ptr<void> there = known.lock()) return there;
  cudaIpcMemHandle_t handle{};
  std::memcpy(&handle, text.data() + std::strlen(kMalloc), sizeof(handle));
  void* base = nullptr;
  C10_CUDA_CHECK(cudaIpcOpenMemHandle(&base, handle, cudaIpcMemLazyEnablePeerAccess));
  std::shared_ptr<void> made(base, [device](void* at) { closeMalloc(device, at); });
  known = made;
  std::erase_if(*opened, [](const auto& entry) { return entry.second.expired(); });
  return made;
}

bool isMalloc(const std::string& text) {
  return text.size() == std::strlen(kMalloc) + sizeof(cudaIpcMemHandle_t) &&
         text.compare(0, std::strlen(kMalloc), kMalloc) == 0;
}

}  // namespace

theirs::ShareableHandle TorchAllocator::shareIpcHandle(void* pointer) {
  if (uncached_.holds(pointer)) return shareMalloc(pointer, 0);
  DeviceState* const state = ownerOf(pointer);
  TORCH_CHECK_VALUE(state != nullptr,
                    "cistern: only memory that this process has allocated can be sent to another "
                    "one; of what it has received itself, send a clone()");
  auto shared = shared_.find(pointer);
  if (!shared) {
    const auto exported = asTorch([&] { return state->allocator.exportBlock(pointer); });
    if (exported->pages.empty()) return shareMalloc(exported->base, exported->offset);
    shared = shared_.share(pointer, exported, exported->bytes);
  }
  return {std::ptrdiff_t(shared->offset), textOf(shared->name)};
}

std::shared_ptr<void> TorchAllocator::getIpcDevPtr(std::string handle) {
  DeviceIndex device = 0;
  C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
  if (isMalloc(handle)) return openMalloc(device, handle);
  using cistern::sharing::OpenedBlocks;
  return asTorch(
      [&] { return OpenedBlocks::theOne().open(at(device).allocator, namedBy(handle)).pages; });
}

void TorchAllocator::enablePeerAccess(DeviceIndex device, DeviceIndex peer) {
  asTorch([&] { at(peer).allocator.enablePeerAccess(device); });
}

// Works whether or not the one device is within the other's reach; the driver takes the direct way
// where there is one.
cudaError_t TorchAllocator::memcpyAsync(void* to, int to_device, const void* from, int from_device,
                                        std::size_t bytes, cudaStream_t stream, bool) {
  if (to_device == from_device)
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
  return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream);
}

}  // namespace cistern_torch
