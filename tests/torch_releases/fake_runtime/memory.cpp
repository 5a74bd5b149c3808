// Memory, and copies of it. The simulated device has bytes, at addresses that the host cannot use:
// the copies run as its work.
#include <cstring>
#include <map>
#include <vector>

#include "fake_runtime.hpp"

namespace fake {
namespace {

using cistern::sim::Access;
using cistern::sim::AccessKind;
using cistern::sim::MemoryView;
using cistern::sim::Work;

cistern::Address addressOf(const void* pointer) {
  return reinterpret_cast<cistern::Address>(pointer);
}

cudaError_t queue(cudaStream_t stream, const char* name, Access access,
                  cistern::sim::Effect effect) {
  Work work;
  work.name = name;
  work.accesses = {access};
  work.effect = std::move(effect);
  return answer(deviceOf(stream).launch(streamOf(stream), std::move(work)));
}

/// The extension's pinned memory is that of the first device, which has a context from the
/// beginning.
bool isPinned(const void* pointer) { return cistern::pinnedAllocator(0).isBlock(pointer); }

/// A copy between the device and memory that is not pinned is over when its call returns.
cudaError_t settle(cudaError_t queued, const void* host, cudaStream_t stream) {
  if (queued != cudaSuccess || isPinned(host)) return queued;
  const auto info = deviceOf(stream).captureInfo(streamOf(stream));
  const bool captured = info.ok() && info.value().status != cistern::CaptureStatus::kNone;
  return captured ? cudaSuccess : cudaStreamSynchronize(stream);
}

cudaError_t toDevice(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  const cudaError_t queued =
      queue(stream, "copy to the device", {addressOf(to), bytes, AccessKind::kWrite},
            [=](MemoryView& memory) { memory.write(addressOf(to), from, bytes); });
  return settle(queued, from, stream);
}
cudaError_t toHost(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
  const cudaError_t queued =
      queue(stream, "copy to the host", {addressOf(from), bytes, AccessKind::kRead},
            [=](MemoryView& memory) { memory.read(addressOf(from), to, bytes); });
  return settle(queued, to, stream);
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return toDevice(to, from, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return toHost(to, from, bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return answer(deviceOf(stream).copy(addressOf(to), addressOf(from), bytes, streamOf(stream)));
    case cudaMemcpyHostToHost:
      std::memcpy(to, from, bytes);
      return cudaSuccess;
    default:
      return answer(cudaErrorInvalidMemcpyDirection);
  }
}

cudaError_t set(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  return queue(stream, "set", {addressOf(to), bytes, AccessKind::kWrite}, [=](MemoryView& memory) {
    const std::vector<char> bytes_of(bytes, char(value));
    memory.write(addressOf(to), bytes_of.data(), bytes);
  });
}

/// The ordinal of the device whose shared allocator has the memory; -1: none.
int ownerOf(const void* pointer) {
  for (int ordinal = 0; ordinal < kDevices; ++ordinal)
    if (cistern::allocator(ordinal).owns(pointer)) return ordinal;
  return -1;
}

}  // namespace
}  // namespace fake

FAKE_API cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  const auto made = fake::current().malloc(bytes);
  if (!made.ok()) return fake::answer(made.error());
  *out = reinterpret_cast<void*>(made.value());
  return cudaSuccess;
}
/// Null is what PyTorch frees to make a context.
FAKE_API cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  return fake::answer(fake::current().free(fake::addressOf(pointer)));
}
FAKE_API cudaError_t cudaHostAlloc(void** out, std::size_t bytes, unsigned) {
  const auto made = fake::current().hostMalloc(bytes);
  if (!made.ok()) return fake::answer(made.error());
  *out = made.value();
  return cudaSuccess;
}
FAKE_API cudaError_t cudaFreeHost(void* pointer) {
  return fake::answer(fake::current().hostFree(pointer));
}
FAKE_API cudaError_t cudaHostRegister(void*, std::size_t, unsigned) { return cudaSuccess; }
FAKE_API cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }

FAKE_API cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
  return fake::copy(to, from, bytes, kind, stream);
}
FAKE_API cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes,
                                cudaMemcpyKind kind) {
  const cudaError_t copied = fake::copy(to, from, bytes, kind, nullptr);
  return copied != cudaSuccess ? copied : cudaStreamSynchronize(nullptr);
}
/// By way of the host, which waits for both devices.
FAKE_API cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device,
                                         std::size_t bytes, cudaStream_t stream) {
  std::vector<char> between(bytes);
  const int before = fake::currentOrdinal();
  (void)cudaStreamSynchronize(stream);
  (void)cudaSetDevice(from_device);
  cudaError_t copied = cudaMemcpy(between.data(), from, bytes, cudaMemcpyDeviceToHost);
  (void)cudaSetDevice(to_device);
  if (copied == cudaSuccess) copied = cudaMemcpy(to, between.data(), bytes, cudaMemcpyHostToDevice);
  (void)cudaSetDevice(before);
  return copied;
}
FAKE_API cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return fake::set(to, value, bytes, stream);
}
FAKE_API cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return fake::set(to, value, bytes, nullptr);
}

FAKE_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                              const void* pointer) {
  *attributes = {};
  attributes->device = fake::ownerOf(pointer);
  if (attributes->device >= 0) {
    attributes->type = cudaMemoryTypeDevice;
    attributes->devicePointer = const_cast<void*>(pointer);
  } else if (fake::isPinned(pointer)) {
    attributes->type = cudaMemoryTypeHost;
    attributes->hostPointer = const_cast<void*>(pointer);
  } else {
    attributes->type = cudaMemoryTypeUnregistered;
  }
  return cudaSuccess;
}

// ---- Other processes: a handle names a malloc of this process, which it gives again
// --------------

FAKE_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  *handle = {};
  std::memcpy(handle->reserved, &pointer, sizeof(pointer));
  return cudaSuccess;
}
FAKE_API cudaError_t cudaIpcOpenMemHandle(void** out, cudaIpcMemHandle_t handle, unsigned) {
  std::memcpy(out, handle.reserved, sizeof(*out));
  return cudaSuccess;
}
FAKE_API cudaError_t cudaIpcCloseMemHandle(void*) { return cudaSuccess; }
