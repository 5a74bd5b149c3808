// The door: include/cistern/pinned.hpp.
#include <utility>

#include "allocator/base/process.hpp"
#include "allocator/pinned/pinned_memory.hpp"
#include "cistern/pinned.hpp"

namespace cistern {

PinnedAllocator::PinnedAllocator(Device& device)
    : device_(device), memory_(std::make_unique<PinnedMemory>(device)) {
  (void)driverMayBeCalled();  // registers for the exit, which must happen before it
}

// In a child of fork nothing is given back: no lock is sure to be free, and the memory is the
// parent's.
PinnedAllocator::~PinnedAllocator() {
  if (!memory_->isHere()) (void)memory_.release();
}

void* PinnedAllocator::allocate(std::size_t bytes) {
  return memory_->here("allocate").allocate(bytes);
}
void PinnedAllocator::free(void* pointer) noexcept { memory_->free(toAddress(pointer)); }
void PinnedAllocator::recordStream(void* pointer, Stream stream, Device& device) {
  memory_->here("recordStream").recordStream(toAddress(pointer), stream, device);
}
void PinnedAllocator::forgetStream(Stream stream, Device& device) {
  memory_->forgetStream(stream, device);
}
void PinnedAllocator::emptyCache() { memory_->emptyCache(); }
void PinnedAllocator::setLimit(std::uint64_t bytes) { memory_->here("setLimit").setLimit(bytes); }
std::uint64_t PinnedAllocator::limit() const { return memory_->here("limit").limit(); }
PinnedStats PinnedAllocator::stats() const { return memory_->here("stats").stats(); }
std::vector<PinnedPiece> PinnedAllocator::pieces() const {
  return memory_->here("pieces").pieces();
}
void PinnedAllocator::resetPeakStats() { memory_->here("resetPeakStats").resetPeaks(); }
void PinnedAllocator::resetAccumulatedStats() {
  memory_->here("resetAccumulatedStats").resetAccumulated();
}
bool PinnedAllocator::isBlock(const void* pointer) const noexcept {
  return memory_->isBlock(toAddress(pointer));
}
std::size_t PinnedAllocator::blockSize(const void* pointer) const {
  return memory_->here("blockSize").blockSize(toAddress(pointer));
}
void PinnedAllocator::setMisuseHook(MisuseHook hook) {
  memory_->here("setMisuseHook").setMisuseHook(std::move(hook));
}
void PinnedAllocator::audit() const { memory_->here("audit").audit(); }

}  // namespace cistern
