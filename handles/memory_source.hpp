// Where workspaces come from: the one file of this folder that takes memory of the allocator.
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

/// Null when there is none, and for an ordinal out of range.
inline CachingAllocator* workspaceAllocator(int device) noexcept {
  if (unsigned(device) >= unsigned(kMaxDevices)) return nullptr;
  return detail::workspace_allocators[std::size_t(device)].load(std::memory_order_acquire);
}

namespace handles {

/// The pool that a request on the stream would be served from now.
WorkspacePool poolFor(CachingAllocator& allocator, Stream stream);

void* allocateWorkspace(CachingAllocator& allocator, std::size_t bytes, Stream stream);
void freeWorkspace(CachingAllocator& allocator, void* memory) noexcept;
/// The memory's last use is on `stream`, which is not its own: its free waits for what is queued
/// there. When that stream is gone the device is waited for.
void useWorkspaceOn(CachingAllocator& allocator, void* memory, Stream stream) noexcept;

/// Returns cached memory to the device, for a library that could not get any by itself. False when
/// the device has no allocator here, or is capturing on the thread's stream, when nothing may go.
bool makeRoom(int device) noexcept;

/// call(), and when that gives anything but `success` once more after making room: libraries need
/// device memory for a handle, and the cache may hold all there is.
template <class Status, class Call>
Status callWithRoom(int device, Status success, Call call) {
  const Status status = call();
  return status != success && makeRoom(device) ? call() : status;
}

}  // namespace handles
}  // namespace cistern
