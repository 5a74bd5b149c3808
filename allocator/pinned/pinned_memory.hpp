// The pinned blocks, and the memory pinned for them. One lock guards everything, and no device is
// called under it. One thread at a time pins memory and gives it back. So a failed search is
// conclusive: no other thread holds memory in transit. Read first: include/cistern/pinned.hpp,
// uses.hpp.
//
// Requests up to 1 MiB share segments of 2 MiB. A larger one that no free block serves gets a
// segment of its own, of the next multiple of 2 MiB. Such a request has found every large segment
// too small or in use. Wholly free ones are given back first, up to as much as the request takes.
// So growing sizes do not leave their predecessors behind.
//
//   bytes of the layouts' segments + refused bytes + claimed == reserved_bytes
//   blocks held == allocation, blocks held and pending == active
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"
#include "allocator/engine/ground/hooks.hpp"
#include "allocator/layout/layout.hpp"
#include "allocator/pinned/uses.hpp"
#include "cistern/options.hpp"
#include "cistern/pinned.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

/// One statistic goes up, or down.
inline void rise(StatValue& stat, std::uint64_t by) noexcept {
  stat.current += std::int64_t(by);
  stat.allocated += std::int64_t(by);
  stat.peak = std::max(stat.peak, stat.current);
}
inline void fall(StatValue& stat, std::uint64_t by) noexcept {
  stat.current -= std::int64_t(by);
  stat.freed += std::int64_t(by);
}

/// The memory of one hostMalloc. `kind`: of the layout that it is in.
struct PinnedSegment : Segment {
  unsigned kind = 0;
};

class PinnedMemory {
 public:
  explicit PinnedMemory(Device& device) : device_(device) {}
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  // PinnedAllocator documents these verbs.
  void* allocate(std::size_t bytes);
  void free(Address address) noexcept;
  void recordStream(Address address, Stream stream, Device& device);
  void forgetStream(Stream stream, Device& device);
  void emptyCache();
  void setLimit(std::uint64_t bytes);
  std::uint64_t limit() const;
  PinnedStats stats() const;
  std::vector<PinnedPiece> pieces() const;
  void resetPeaks();
  void resetAccumulated();
  bool isBlock(Address address) const noexcept;
  std::size_t blockSize(Address address) const;
  void setMisuseHook(MisuseHook hook);
  void audit() const;

  /// False in a child of fork, where nothing may be touched.
  bool isHere() const noexcept { return made_.isHere(); }
  /// Throws Error there. For verbs.
  PinnedMemory& here(const char* verb) {
    made_.requireHere(verb);
    return *this;
  }

 private:
  struct Request {
    std::size_t bytes;
    std::uint32_t granules;
    unsigned kind;          ///< of layouts_
    std::uint64_t segment;  ///< bytes that would be pinned for it
  };
  /// Linked by Segment::next, in no layout.
  struct Segments {
    Segment* first = nullptr;
    void push(PinnedSegment& segment) noexcept;
    PinnedSegment* pop() noexcept;
  };

  static Request requestOf(std::size_t bytes);
  void* tryAllocate(const Request& request);
  void* fromRoom(const Request& request);
  void* fromRoomMade(const Request& request);
  void* fromFree(const Request& request);
  void* fromEnded(const Request& request, PinnedUses::Budget most);
  void* fromNew(const Request& request) CISTERN_REQUIRES(system_mutex_);
  void* givenOut(Block& block, const Request& request) noexcept CISTERN_REQUIRES(mutex_);
  bool claim(const Request& request) CISTERN_REQUIRES(system_mutex_);
  void unclaim(std::uint64_t bytes) noexcept;
  [[noreturn]] void outOfMemory(const Request& request);

  /// Gives all wholly free segments back.
  void giveFreeBack() CISTERN_REQUIRES(system_mutex_);
  void release(Block& block) noexcept CISTERN_REQUIRES(mutex_);
  void noteEnded(PinnedUses::Use& use) noexcept;
  bool waitForUses() noexcept;
  void noteWait() noexcept;
  /// Takes wholly free segments of one kind out, until they have that many bytes or no more are
  /// left.
  void takeFree(unsigned kind, std::uint64_t bytes, Segments& taken) CISTERN_REQUIRES(mutex_);
  /// Gives them back to the system. Those that it refuses are kept for the next emptyCache.
  void giveBack(Segments segments) noexcept CISTERN_REQUIRES(system_mutex_);

  Block* find(Address address) const noexcept CISTERN_REQUIRES(mutex_);
  const Segment* covering(Address address) const noexcept CISTERN_REQUIRES(mutex_);
  Misuse describe(const char* verb, Address address) const CISTERN_REQUIRES(mutex_);
  Layout& layoutOf(const Block& block) noexcept CISTERN_REQUIRES(mutex_);

  Device& device_;
  const Birthplace made_;
  Mutex system_mutex_{LockRank::kPinnedSystem};
  mutable Mutex mutex_{LockRank::kPinnedMemory};
  std::array<Layout, kSizeKindCount> layouts_ CISTERN_GUARDED_BY(mutex_);
  Segments refused_ CISTERN_GUARDED_BY(mutex_);  ///< that the system did not take back
  PinnedStats stats_ CISTERN_GUARDED_BY(mutex_);
  std::uint64_t limit_ CISTERN_GUARDED_BY(mutex_) = kUnlimited;
  std::string last_error_ CISTERN_GUARDED_BY(mutex_);  ///< the device's, of the last failed pinning
  HookList<void, const Misuse&> misuse_hook_{"setMisuseHook", true};
  PinnedUses uses_{[this](PinnedUses::Use& use) { noteEnded(use); }};
};

}  // namespace cistern
