// The source of workspaces: the one file of this folder that takes memory of the allocator.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "allocator/base/device_slots.hpp"
#include "cistern/handles/library.hpp"

namespace cistern {

namespace detail {
inline constinit std::array<std::atomic<CachingAllocator*>, std::size_t(kMaxDevices)>
    workspace_allocators{};
}

/// Null for a device without one, and for an ordinal out of range.
inline CachingAllocator* workspaceAllocator(int device) noexcept {
  if (unsigned(device) >= unsigned(kMaxDevices)) return nullptr;
  return detail::workspace_allocators[std::size_t(device)].load(std::memory_order_acquire);
}

namespace handles {

/// The pool that would serve a request on the stream now.
WorkspacePool poolFor(CachingAllocator& allocator, Stream stream);

void* allocateWorkspace(CachingAllocator& allocator, std::size_t bytes, Stream stream);
void freeWorkspace(CachingAllocator& allocator, void* memory) noexcept;
/// The memory's last use is on `stream`, which is not its own: its free waits for the work queued
/// there. If that stream is gone, waits for the device.
void useWorkspaceOn(CachingAllocator& allocator, void* memory, Stream stream) noexcept;

/// Returns cached memory to the device, for a library that could not get any by itself. False when
/// the device has no allocator here, or is capturing on the thread's stream, when nothing may go.
bool makeRoom(int device) noexcept;

/// Runs call(). If that returns anything but `success`, makes room and runs it once more. Libraries
/// need device memory for a handle, and the cache may hold all of it.
template <class Status, class Call>
Status callWithRoom(int device, Status success, Call call) {
  const Status status = call();
  return status != success && makeRoom(device) ? call() : status;
}

}  // namespace handles
}  // namespace cistern
