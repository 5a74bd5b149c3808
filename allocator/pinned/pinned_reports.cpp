// Reports on pinned memory: figures, pointers, misuses.
#include <fmt/format.h>

#include "allocator/base/check.hpp"
#include "allocator/pinned/pinned_memory.hpp"

namespace cistern {

Block* PinnedMemory::find(Address address) const noexcept {
  for (const Layout& layout : layouts_) {
    if (Block* const block = layout.find(address)) return block;
  }
  return nullptr;
}

Layout& PinnedMemory::layoutOf(const Block& block) noexcept {
  return layouts_[static_cast<const PinnedSegment*>(block.segment)->kind];
}

const Segment* PinnedMemory::covering(Address address) const noexcept {
  for (const Layout& layout : layouts_) {
    for (const Segment* at = layout.segments(); at != nullptr; at = at->next) {
      if (address >= at->base && address < at->end()) return at;
    }
  }
  return nullptr;
}

bool PinnedMemory::isBlock(Address address) const noexcept {
  if (!isHere()) return false;
  const MutexLock lock(mutex_);
  return find(address) != nullptr;
}

std::size_t PinnedMemory::blockSize(Address address) const {
  const MutexLock lock(mutex_);
  if (const Block* const block = find(address)) return block->bytes();
  throw InvalidArgument(describe("blockSize", address).text());
}

Misuse PinnedMemory::describe(const char* verb, Address address) const {
  Misuse misuse;
  misuse.verb = verb;
  misuse.pointer = address;
  misuse.pinned = true;
  const Segment* const segment = covering(address);
  if (segment == nullptr) return misuse;
  const std::size_t kind = static_cast<const PinnedSegment*>(segment)->kind;
  const Block& block = layouts_[kind].covering(*segment, address);
  misuse.block = block.address();
  misuse.block_bytes = block.bytes();
  misuse.kind = block.state() == BlockState::kAllocated ? MisuseKind::kInteriorPointer
                                                        : MisuseKind::kDoubleFree;
  return misuse;
}

void PinnedMemory::setMisuseHook(MisuseHook hook) { misuse_hook_.set(std::move(hook)); }

void PinnedMemory::setLimit(std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  limit_ = bytes;
}
std::uint64_t PinnedMemory::limit() const {
  const MutexLock lock(mutex_);
  return limit_;
}

PinnedStats PinnedMemory::stats() const {
  const MutexLock lock(mutex_);
  PinnedStats stats = stats_;
  stats.host_bytes = uses_.hostBytes();
  for (const Layout& layout : layouts_) stats.host_bytes += layout.hostBytes();
  return stats;
}

// Memory that the system did not take back is free, and serves no request.
std::vector<PinnedPiece> PinnedMemory::pieces() const {
  const MutexLock lock(mutex_);
  std::vector<PinnedPiece> pieces;
  for (const Layout& layout : layouts_) {
    for (const Segment* at = layout.segments(); at != nullptr; at = at->next) {
      for (const Block* block = at->first; block != nullptr; block = block->next) {
        const bool held = block->state() == BlockState::kAllocated;
        const BlockUse in_use = held ? BlockUse::kAllocated : BlockUse::kPending;
        pieces.push_back(
            {block->address(), block->bytes(), block->isFree() ? BlockUse::kFree : in_use});
      }
    }
  }
  for (const Segment* at = refused_.first; at != nullptr; at = at->next)
    pieces.push_back({at->base, at->bytes, BlockUse::kFree});
  return pieces;
}

namespace {

template <class Change>
void forEachValue(PinnedStats& stats, Change change) {
  for (StatValue* value : {&stats.allocation, &stats.segment, &stats.active, &stats.requested_bytes,
                           &stats.allocated_bytes, &stats.active_bytes, &stats.reserved_bytes}) {
    change(*value);
  }
}

}  // namespace

void PinnedMemory::resetPeaks() {
  const MutexLock lock(mutex_);
  forEachValue(stats_, [](StatValue& value) { value.peak = value.current; });
}
void PinnedMemory::resetAccumulated() {
  const MutexLock lock(mutex_);
  forEachValue(stats_, [](StatValue& value) { value.allocated = value.freed = 0; });
}

// Walks everything. Reserved bytes that are claimed, but not pinned yet, are in no segment. So it
// is called while no thread allocates or frees.
void PinnedMemory::audit() const {
  const MutexLock lock(mutex_);
  std::uint64_t held = 0, held_bytes = 0, active = 0, active_bytes = 0, reserved = 0, segments = 0;
  std::size_t waiting = 0;
  const auto count = [&](const Segment& segment) {
    reserved += segment.bytes;
    ++segments;
  };
  for (unsigned kind = 0; kind < layouts_.size(); ++kind) {
    layouts_[kind].audit();
    for (const Segment* at = layouts_[kind].segments(); at != nullptr; at = at->next) {
      CISTERN_CHECK(static_cast<const PinnedSegment*>(at)->kind == kind);
      count(*at);
      for (const Block* block = at->first; block != nullptr; block = block->next) {
        const bool is_held = block->state() == BlockState::kAllocated;
        const bool is_active = is_held || block->state() == BlockState::kPending;
        CISTERN_CHECK(is_active || block->isFree());
        const std::size_t uses = is_active ? PinnedUses::audit(*block) : 0;
        waiting += is_held ? 0 : uses;
        CISTERN_CHECK(is_held || !is_active || uses > 0);
        held += is_held;
        active += is_active;
        held_bytes += is_held ? block->bytes() : 0;
        active_bytes += is_active ? block->bytes() : 0;
      }
    }
  }
  for (const Segment* at = refused_.first; at != nullptr; at = at->next) count(*at);
  CISTERN_CHECK(std::uint64_t(stats_.allocation.current) == held);
  CISTERN_CHECK(std::uint64_t(stats_.active.current) == active);
  CISTERN_CHECK(std::uint64_t(stats_.allocated_bytes.current) == held_bytes);
  CISTERN_CHECK(std::uint64_t(stats_.active_bytes.current) == active_bytes);
  CISTERN_CHECK(std::uint64_t(stats_.reserved_bytes.current) == reserved);
  CISTERN_CHECK(std::uint64_t(stats_.segment.current) == segments);
  CISTERN_CHECK(stats_.requested_bytes.current <= stats_.allocated_bytes.current);
  CISTERN_CHECK(uses_.waiting() == waiting);
}

}  // namespace cistern
