// The verbs of other processes and other devices.
#include "allocator/engine/engine.hpp"
#include "allocator/engine/sharing/imports.hpp"

namespace cistern {

std::shared_ptr<const BlockExport> CachingAllocator::exportBlock(void* pointer) {
  return engine_->exports.make(toAddress(pointer));
}
std::shared_ptr<void> CachingAllocator::openImport(const std::vector<SharedPage>& pages) {
  return importPages(device(), pages);
}
void CachingAllocator::enablePeerAccess(int ordinal) { device().admitPeer(ordinal).orThrow(); }

}  // namespace cistern
