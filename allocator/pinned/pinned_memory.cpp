// Allocating and freeing. pinning.cpp pins memory and gives it back.
#include "allocator/pinned/pinned_memory.hpp"

#include <new>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"

namespace cistern {
namespace {

constexpr std::uint64_t kSmallMost = kMiB;
constexpr std::uint64_t kSegmentUnit = 2 * kMiB;
constexpr std::uint64_t kMost = kTiB;  // a layout's segments are below 2 TiB

// Records the requested size: 64 bits, in two parts of the record.
void setAsked(Block& block, std::uint64_t bytes) {
  block.use.asked = std::uint32_t(bytes);
  block.use.holder = std::uint32_t(bytes >> 32);
}
std::uint64_t asked(const Block& block) {
  return std::uint64_t{block.use.holder} << 32 | block.use.asked;
}

}  // namespace

PinnedMemory::Request PinnedMemory::requestOf(std::size_t bytes) {
  const bool small = bytes <= kSmallMost;
  return {bytes, std::uint32_t(granulesFor(bytes)),
          unsigned(small ? SizeKind::kSmall : SizeKind::kLarge),
          small ? kSegmentUnit : roundUp(bytes, kSegmentUnit)};
}

void* PinnedMemory::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  if (bytes > kMost) outOfMemory({bytes, 0, 0, bytes});
  const Request request = requestOf(bytes);
  if (void* const block = tryAllocate(request)) return block;
  outOfMemory(request);
}

// All free memory was given back, and that was not enough. If a use has ended since then, more is
// free, also if another thread has noticed. Other threads' uses could keep this thread here: a few
// tries are enough.
void* PinnedMemory::tryAllocate(const Request& request) {
  constexpr int kTries = 8;
  if (void* const block = fromFree(request)) return block;
  if (void* const block = fromRoom(request)) return block;
  for (int tries = 0;;) {
    const std::uint64_t ended = uses_.ended();
    if (void* const block = fromRoomMade(request)) return block;
    if (!waitForUses() && (uses_.ended() == ended || ++tries == kTries)) return nullptr;
    if (void* const block = fromFree(request)) return block;
  }
}

// A request that free memory serves pays a bounded share of the polls. A request that would pin
// more, or be refused, looks at all waiting records.
void* PinnedMemory::fromFree(const Request& request) {
  if (void* const block = fromEnded(request, PendingFrees::kFew)) return block;
  return uses_.waiting() == 0 ? nullptr : fromEnded(request, PendingFrees::kAll);
}

void* PinnedMemory::fromRoom(const Request& request) {
  const MutexLock alone(system_mutex_);
  if (void* const block = fromNew(request)) return block;
  const MutexLock lock(mutex_);
  ++stats_.num_alloc_retries;
  return nullptr;
}

void* PinnedMemory::fromRoomMade(const Request& request) {
  const MutexLock alone(system_mutex_);
  giveFreeBack();
  if (void* const block = fromFree(request)) return block;
  return fromNew(request);
}

void* PinnedMemory::fromEnded(const Request& request, PinnedUses::Budget most) {
  uses_.poll(most);
  const MutexLock lock(mutex_);
  Block* const block = layouts_[request.kind].allocate(request.granules);
  return block == nullptr ? nullptr : givenOut(*block, request);
}

void* PinnedMemory::givenOut(Block& block, const Request& request) noexcept {
  setAsked(block, request.bytes);
  PinnedUses::begin(block);
  rise(stats_.allocation, 1);
  rise(stats_.active, 1);
  rise(stats_.requested_bytes, request.bytes);
  rise(stats_.allocated_bytes, block.bytes());
  rise(stats_.active_bytes, block.bytes());
  return toPointer(block.address());
}

void PinnedMemory::free(Address address) noexcept {
  if (address == 0 || !isHere()) return;
  Block* block = nullptr;
  Misuse misuse;
  {
    const MutexLock lock(mutex_);
    block = find(address);
    if (block != nullptr) {
      fall(stats_.allocation, 1);
      fall(stats_.requested_bytes, asked(*block));
      fall(stats_.allocated_bytes, block->bytes());
      if (!PinnedUses::any(*block)) return release(*block);
      layoutOf(*block).setPending(*block);
    } else {
      ++stats_.num_misuses;
      misuse = describe("free", address);
    }
  }
  block != nullptr ? uses_.end(*block) : tellMisuse(misuse_hook_, misuse);
}

void PinnedMemory::release(Block& block) noexcept {
  fall(stats_.active, 1);
  fall(stats_.active_bytes, block.bytes());
  (void)layoutOf(block).release(block, 0);
}

void PinnedMemory::noteEnded(PinnedUses::Use& use) noexcept {
  const MutexLock lock(mutex_);
  if (Block* const ready = uses_.remove(use)) release(*ready);
}

void PinnedMemory::recordStream(Address address, Stream stream, Device& device) {
  if (address == 0) return;
  PinnedUses::OnDevice& on = uses_.meet(stream, device);
  Misuse misuse;
  {
    const MutexLock lock(mutex_);
    if (Block* const block = find(address)) return uses_.add(*block, on, stream);
    ++stats_.num_misuses;
    misuse = describe("recordStream", address);
  }
  tellMisuse(misuse_hook_, misuse);
}

void PinnedMemory::forgetStream(Stream stream, Device& device) {
  if (isHere() && driverMayBeCalled()) uses_.forget(stream, device);
}

void PinnedMemory::outOfMemory(const Request& request) {
  const MutexLock lock(mutex_);
  ++stats_.num_ooms;
  std::string text = fmt::format(
      "out of pinned memory: {} were asked for; {} are pinned, of which {} are allocated and {} "
      "wait for "
      "queued work",
      formatBytes(request.bytes), formatBytes(std::uint64_t(stats_.reserved_bytes.current)),
      formatBytes(std::uint64_t(stats_.allocated_bytes.current)),
      formatBytes(std::uint64_t(stats_.active_bytes.current - stats_.allocated_bytes.current)));
  if (request.bytes > kMost) {
    text += fmt::format("; no request may be larger than {}", formatBytes(kMost));
  } else if (limit_ != kUnlimited) {
    text += fmt::format("; the limit is {}", formatBytes(limit_));
  }
  if (!last_error_.empty()) text += "; the last that was refused: " + last_error_;
  throw OutOfPinnedMemory(text);
}

}  // namespace cistern
