#include "handles/memory_source.hpp"

#include <fmt/format.h>

#include "allocator/base/current.hpp"
#include "allocator/engine/caching_allocator.hpp"
#include "handles/workspaces.hpp"

namespace cistern {

void setWorkspaceAllocator(int device, CachingAllocator* allocator) {
  std::atomic<CachingAllocator*>& slot = detail::workspace_allocators[ordinalIndex(device)];
  if (allocator != nullptr && allocator->device().ordinal() != device) {
    throw InvalidArgument(fmt::format("workspaces of device {} from an allocator of device {}",
                                      device, allocator->device().ordinal()));
  }
  if (slot.load() == allocator) return;
  slot.store(nullptr);
  handles::workspaces().clear(device);
  slot.store(allocator);
  handles::noteWorkspacesChanged();  // once more: who looked in between saw none
}

namespace handles {

// The engine has one pool, the default one.
WorkspacePool poolFor(CachingAllocator&, Stream) { return {}; }

void* allocateWorkspace(CachingAllocator& allocator, std::size_t bytes, Stream stream) {
  return allocator.allocate(bytes, stream);
}

void freeWorkspace(CachingAllocator& allocator, void* memory) noexcept { allocator.free(memory); }

bool makeRoom(int device) noexcept try {
  CachingAllocator* const allocator = workspaceAllocator(device);
  if (allocator == nullptr) return false;
  const Result<CaptureInfo> capture = allocator->device().captureInfo(currentStream(device));
  if (!capture || capture.value().status != CaptureStatus::kNone) return false;
  allocator->emptyCache();
  return true;
} catch (...) {
  return false;  // the library's own failure is the one to tell
}

}  // namespace handles
}  // namespace cistern
