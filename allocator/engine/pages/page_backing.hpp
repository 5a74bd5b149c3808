// The backing `pages`. It has ranges of reserved addresses. A heap has ranges for each kind of
// size, and the newest of them grows. When that is used up, a further one is opened. Physical pages
// are mapped there where they are needed, and moved there from where they lie free. The backing
// owns the lock, and the state, which that lock guards. See docs/pages.md for why all this is safe,
// and mover.hpp for how a miss is served.
#pragma once

#include <vector>

#include "allocator/base/background.hpp"
#include "allocator/engine/ground/holds.hpp"
#include "allocator/engine/pages/mover.hpp"
#include "allocator/engine/pages/placing.hpp"
#include "allocator/engine/pages/release.hpp"

namespace cistern {

/// Thread-safe. No function may be called with a heap's lock held.
class PageBacking final : MemoryHooks::Owner {
 public:
  explicit PageBacking(Core& core);
  PageBacking(const PageBacking&) = delete;
  PageBacking& operator=(const PageBacking&) = delete;

  /// Whether the device can do what this backing needs.
  static bool supportedBy(const Device& device);

  /// A block for a request that the heap's free memory does not serve. Null when no memory can be
  /// had without a wait. Then the program has what it had, but free pages may lie elsewhere, or
  /// have gone back to the device. Throws std::bad_alloc, with these effects too.
  Block* place(Heap& heap, const Request& request, PagesFrom from);
  /// A block out of free memory, where the request was placed two rounds ago (Rounds), if
  /// that can be had. Makes no device call. Null when the heap's free memory does not serve
  /// the request. Throws std::bad_alloc, changing nothing.
  Block* placeAsBefore(Heap& heap, const Request& request);

  /// Whether the device refuses pages altogether. It does if none has ever worked here, its last
  /// answer was a refusal, and a trial page does not work either. From then on no page is
  /// requested.
  bool areRefused();

  /// Each page of the heap's that lies wholly free goes home, if it is still mapped there. Home is
  /// where a low water found it first; in a private pool it is where it was mapped first. Does
  /// nothing while another thread holds the lock. Makes no device call. If the host is short of
  /// memory, pages that were not looked at stay.
  void sendHome(Heap& heap) noexcept;

  /// Gives pages that lie wholly free in the heaps back to the device until `bytes` are back.
  /// Returns how many are. Heaps whose memory is segments are passed over.
  /// `only_of_device`: pages of the device, which heaps of overflow have, too.
  std::uint64_t release(const std::vector<Heap*>& heaps, std::uint64_t bytes,
                        bool only_of_device = false);
  /// Gives the heap's pages back that lie wholly free and that nothing has used since `epoch`. Ends
  /// the present epoch, and returns it.
  std::uint64_t releaseUnused(Heap& heap, std::uint64_t epoch);
  /// Gives all pages that lie wholly free in the heaps back to the device. The background thread,
  /// or a later miss, gives back what queued work may still use.
  void emptyCache(const std::vector<Heap*>& heaps);
  /// As SegmentBacking's. Returns how many bytes are back, or go back when hooks have heard of it.
  std::uint64_t collectGarbage(const std::vector<Heap*>& heaps, std::uint64_t bytes);
  // Engine has the contracts of these three. A page that is held stays in its pool. `capture`: 0
  // for none.
  void hold(const Block& block, HeldMemory& by, HoldCounts::Kind kind, std::uint32_t capture);
  void letGo(HeldMemory& by, HoldCounts::Kind kind) noexcept;
  /// The same for a range of the device's addresses within the segment. Returns where the memory
  /// that it holds ends: before `what.to` if none lies there.
  Address hold(const HeapSegment& segment, AddressRange what, FixedHold& by);
  /// Whether any of the block's pages is held. A graph may reach the page at another address, too.
  bool isHeld(const Block& block) const;
  /// Where the block lies: kHost if any of its pages is host memory.
  Location locationOf(const Block& block) const;
  /// The bytes of the block that lie in pages of the host. Pre: the heap's lock is held.
  std::uint64_t hostBytesIn(const Block& block) const CISTERN_REQUIRES(mutex_);
  /// What the report on a refused request says that it lacks.
  struct Lack {
    std::uint64_t growth = 0;  ///< bytes of the pages that have to be made for the request
    std::uint64_t free = 0;    ///< bytes of pages that go back to the device first
  };
  /// The least growth that serves the request in `own`, its heap, once the free pages of that kind
  /// in `heaps` are back; with kOverflow, those of the device, too. Null: it has none yet.
  /// `incomplete`: also pages that queued work may still use. Throws std::bad_alloc.
  Lack lackOf(Heap* own, const Request& request, const std::vector<Heap*>& heaps, MemoryKind kind,
              bool incomplete);
  /// For allocator/sleep, which takes pages away for a while, and pools/restoration.
  pages::State& state() CISTERN_REQUIRES(mutex_) { return state_; }

  PageCounts counts() const;
  /// The bytes of pages that holds of the program's keep in place.
  std::uint64_t heldBytes() const;
  /// The bytes of pages of pools that sleep, which are not there.
  std::uint64_t asleepBytes() const;
  std::size_t hostBytes() const;

  /// Locks out everything here. For reports, which see all of it at rest.
  Mutex& mutex() const CISTERN_TSA(lock_returned(mutex_)) { return mutex_; }
  /// Pre: mutex() and all heaps' locks are held; `reserved` is what heaps count as such. Aborts on
  /// a broken invariant.
  void audit(std::uint64_t reserved) const;

  /// MemoryHooks::addPresent for each range of addresses that is mapped. Throws std::bad_alloc.
  void tellPresent();
  void finish(void* range) noexcept override;

  /// Ends the thread. It finishes what is under way in the background, and does nothing else.
  void stop() noexcept { background_.stop(); }
  /// Pre: stop(). If `driver` may still be called, waits for the device and gives everything back
  /// to it. Nothing else may be called afterwards.
  void shutDown(bool driver) noexcept;

 private:
  Block* placeNow(Heap& heap, const Request& request, PagesFrom from, pages::WantedPages* wanted);
  void makeSpares(Heap& heap, SizeKind kind, pages::WantedPages wanted);
  bool emptyHeap(Heap& heap);
  Background::Next clearUpInBackground() noexcept;

  Core& core_;
  mutable Mutex mutex_{LockRank::kPages};
  pages::State state_ CISTERN_GUARDED_BY(mutex_);
  Background background_;
};

}  // namespace cistern
