// Allocating and freeing; what is pinned, and given back, is in pinning.cpp.
#include "allocator/pinned/memory.hpp"

#include <new>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/pinned/counting.hpp"

namespace cistern {
namespace {

constexpr std::uint64_t kSmallMost = kMiB;
constexpr std::uint64_t kSegmentUnit = 2 * kMiB;
constexpr std::uint64_t kMost = kTiB;  // a layout's segments are below 2 TiB

// What was asked for, of which the record has room for 64 bits in two parts.
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
  if (!isHere()) throw Error("an allocator from before a fork cannot be used in the child");
  if (bytes == 0) return nullptr;
  if (bytes > kMost) outOfMemory({bytes, 0, 0, bytes});
  const Request request = requestOf(bytes);
  if (void* const block = serve(request)) return block;
  outOfMemory(request);
}

// What lay free when all of that was given back was not enough. A use that is over since then has
// freed more, also where another thread has found out. Others that go on would keep this one here:
// a few times are enough.
void* PinnedMemory::serve(const Request& request) {
  constexpr int kTries = 8;
  if (void* const block = fromFree(request)) return block;
  if (void* const block = fromRoom(request)) return block;
  for (int tries = 0;;) {
    std::uint64_t over = 0;
    if (void* const block = fromRoomMade(request, over)) return block;
    if (!waitForUses() && (usesOver() == over || ++tries == kTries)) return nullptr;
    if (void* const block = fromFree(request)) return block;
  }
}

void* PinnedMemory::fromRoom(const Request& request) {
  const MutexLock alone(system_mutex_);
  if (void* const block = fromNew(request)) return block;
  const MutexLock lock(mutex_);
  ++stats_.num_alloc_retries;
  return nullptr;
}

void* PinnedMemory::fromRoomMade(const Request& request, std::uint64_t& over) {
  const MutexLock alone(system_mutex_);
  over = giveFreeBack();
  if (void* const block = fromFree(request)) return block;
  return fromNew(request);
}

void* PinnedMemory::fromFree(const Request& request) {
  const MutexLock lock(mutex_);
  poll();
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
  Misuse misuse;
  {
    const MutexLock lock(mutex_);
    if (Block* const block = find(address)) {
      fall(stats_.allocation, 1);
      fall(stats_.requested_bytes, asked(*block));
      fall(stats_.allocated_bytes, block->bytes());
      if (!PinnedUses::any(*block)) return release(*block);
      layoutOf(*block).setPending(*block);
      return uses_.end(*block);
    }
    ++stats_.num_misuses;
    misuse = describe("free", address);
  }
  tellMisuse(misuse_hook_, misuse);
}

void PinnedMemory::release(Block& block) noexcept {
  fall(stats_.active, 1);
  fall(stats_.active_bytes, block.bytes());
  (void)layoutOf(block).release(block, 0);
}

void PinnedMemory::poll() noexcept {
  uses_.poll([&](Block& block) {
    mutex_.assertHeld();
    release(block);
  });
}

void PinnedMemory::recordStream(Address address, Stream stream, Device& device) {
  if (address == 0) return;
  if (!isHere()) throw Error("an allocator from before a fork cannot be used in the child");
  Misuse misuse;
  {
    const MutexLock lock(mutex_);
    if (Block* const block = find(address)) return uses_.add(*block, stream, device);
    ++stats_.num_misuses;
    misuse = describe("recordStream", address);
  }
  tellMisuse(misuse_hook_, misuse);
}

void PinnedMemory::forgetStream(Stream stream, Device& device) {
  if (!isHere()) return;
  const MutexLock lock(mutex_);
  uses_.forget(stream, device);
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
