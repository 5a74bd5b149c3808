#include "handles/memory_source.hpp"

#include <fmt/format.h>

#include "cistern/allocator.hpp"
#include "cistern/current.hpp"
#include "handles/library_memory.hpp"
#include "handles/workspaces.hpp"

namespace cistern {
namespace {

// A pool whose last user has let go has no graph that would use its workspaces. An allocator that
// is set, taken away and set again is watched twice, which does no harm.
void watchPoolsOf(CachingAllocator& allocator, int device) {
  allocator.attachPoolReleasedObserver([&allocator, device](MempoolId_t pool) {
    if (workspaceAllocator(device) == &allocator) handles::workspaces().releasePool(device, pool);
  });
}

}  // namespace

void setWorkspaceAllocator(int device, CachingAllocator* allocator) {
  std::atomic<CachingAllocator*>& slot = detail::workspace_allocators[ordinalIndex(device)];
  if (allocator != nullptr && allocator->device().ordinal() != device) {
    throw InvalidArgument(fmt::format("workspaces of device {} from an allocator of device {}",
                                      device, allocator->device().ordinal()));
  }
  if (slot.load() == allocator) return;
  slot.store(nullptr);
  handles::workspaces().clear(device);
  handles::libraryMemory().forgetAllocator(device);
  if (allocator != nullptr) watchPoolsOf(*allocator, device);
  slot.store(allocator);
  handles::noteWorkspacesChanged();  // once more: a thread that looked in between saw none
}

namespace handles {

// During a capture, its graph's pool, from which a workspace is then allocated.
WorkspacePool poolFor(CachingAllocator& allocator, Stream stream) {
  return allocator.poolFor(stream);
}

void* allocateWorkspace(CachingAllocator& allocator, std::size_t bytes, Stream stream) {
  return allocator.allocate(bytes, stream);
}

void freeWorkspace(CachingAllocator& allocator, void* memory) noexcept { allocator.free(memory); }

void useWorkspaceOn(CachingAllocator& allocator, void* memory, Stream stream) noexcept try {
  allocator.recordStream(memory, stream);
} catch (...) {
  (void)allocator.device().synchronizeDevice();
}

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
