#include "allocator/pinned/uses.hpp"

#include <fmt/format.h>

#include "allocator/base/check.hpp"
#include "allocator/base/process.hpp"
#include "allocator/device/per_thread_stream.hpp"
#include "cistern/error.hpp"

namespace cistern {

PinnedUses::~PinnedUses() { delete devices_.load(std::memory_order_acquire); }

// ---- Devices ------------------------------------------------------------------------------------

PinnedUses::OnDevice* PinnedUses::find(const Device& device) const noexcept {
  OnDevice* at = devices_.load(std::memory_order_acquire);
  while (at != nullptr && &at->device != &device) at = at->next.get();
  return at;
}

PinnedUses::OnDevice& PinnedUses::findOrMake(Device& device) {
  if (OnDevice* const there = find(device)) return *there;
  const MutexLock lock(making_);
  if (OnDevice* const there = find(device)) return *there;
  auto made = std::make_unique<OnDevice>(device, over_);
  made->next.reset(devices_.load(std::memory_order_relaxed));
  devices_.store(made.get(), std::memory_order_release);
  return *made.release();
}

PinnedUses::OnDevice& PinnedUses::meet(Stream stream, Device& device) {
  requireOneStream(device, stream);
  const Result<CaptureInfo> info = device.captureInfo(stream);
  if (!info && isGone(info.error())) {
    throw InvalidArgument(fmt::format("stream {:#x} is not a live stream of {} device {} ({})",
                                      stream.raw, device.backend(), device.ordinal(),
                                      info.error().name));
  }
  OnDevice& on = findOrMake(device);
  on.streams.registerStream(stream);
  return on;
}

void PinnedUses::forget(Stream stream, Device& device) {
  requireOneStream(device, stream);
  if (OnDevice* const on = find(device)) on->streams.forgetStream(stream);
}

// ---- Uses ---------------------------------------------------------------------------------------

void PinnedUses::add(Block& block, OnDevice& on, Stream stream) {
  for (Use* use = first(block); use != nullptr; use = static_cast<Use*>(use->next)) {
    if (use->on == &on) return use->streams.note(stream);
  }
  Use& use = uses_.take();
  use.block = &block;
  use.on = &on;
  use.streams = StreamUses(stream);
  use.next = first(block);
  block.use.uses = &use;
}

Block* PinnedUses::remove(Use& use) noexcept {
  Block& block = *use.block;
  Use* before = first(block);
  if (before == &use) {
    block.use.uses = static_cast<Use*>(use.next);
  } else {
    while (before->next != &use) before = static_cast<Use*>(before->next);
    before->next = use.next;
  }
  uses_.recycle(use);
  return any(block) ? nullptr : &block;
}

// A use that was handed over may have gone by the next line.
void PinnedUses::end(Block& block) noexcept {
  if (!driverMayBeCalled()) return;  // at exit nobody will use it again
  for (Use* use = first(block); use != nullptr;) {
    Use* const next = static_cast<Use*>(use->next);
    use->on->pending.add({use, false, false}, use->streams);
    use = next;
  }
}

// ---- What has ended -----------------------------------------------------------------------------

void PinnedUses::poll(Budget most) noexcept {
  for (OnDevice* on = devices_.load(std::memory_order_acquire); on != nullptr; on = on->next.get())
    on->pending.poll(most);
}

bool PinnedUses::wait() noexcept {
  const MutexLock lock(waiting_);
  OnDevice* on = devices_.load(std::memory_order_acquire);
  while (on != nullptr && (on->pending.waiting() == 0 || !on->pending.wait())) on = on->next.get();
  return on != nullptr;
}

bool PinnedUses::waitForStuck() noexcept {
  const MutexLock lock(waiting_);
  bool any = false;
  for (OnDevice* on = devices_.load(std::memory_order_acquire); on != nullptr; on = on->next.get())
    any |= on->pending.waitForStuck();
  return any;
}

std::size_t PinnedUses::waiting() const noexcept {
  std::size_t sum = 0;
  for (OnDevice* on = devices_.load(std::memory_order_acquire); on != nullptr; on = on->next.get())
    sum += on->pending.waiting();
  return sum;
}

std::uint64_t PinnedUses::ended() const noexcept {
  std::uint64_t sum = 0;
  for (OnDevice* on = devices_.load(std::memory_order_acquire); on != nullptr; on = on->next.get())
    sum += on->pending.released();
  return sum;
}

std::size_t PinnedUses::audit(const Block& block) {
  std::size_t count = 0;
  for (const Use* use = first(block); use != nullptr; use = static_cast<Use*>(use->next)) {
    CISTERN_CHECK(use->block == &block && use->on != nullptr && !use->streams.empty());
    ++count;
  }
  return count;
}

}  // namespace cistern
