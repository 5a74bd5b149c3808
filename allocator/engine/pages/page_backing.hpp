// The backing `pages`. It has ranges of reserved addresses, one growing range for each kind of size
// in a heap. Physical pages are mapped there where they are needed, and moved there from where they
// lie free. The backing owns the lock, and the ground, which that lock guards. See docs/pages.md
// for why all this is safe, and mover.hpp for how a miss is served.
#pragma once

#include "allocator/base/bytes.hpp"
#include "allocator/engine/backing/memory_backing.hpp"
#include "allocator/engine/pages/placing.hpp"
#include "allocator/engine/pages/release.hpp"

namespace cistern {

/// Thread-safe. No function may be called with a heap's lock held.
class PageBacking final : public MemoryBacking {
 public:
  explicit PageBacking(Engine& engine);

  /// Whether the device can do what it takes.
  static bool supportedBy(const Device& device);

  /// A block for a request that the heap's free memory does not serve. Null when no memory can be
  /// had without a wait. Then the program has what it had, but free pages may lie elsewhere, or
  /// have gone back to the device. Throws std::bad_alloc; the same holds then.
  Block* serve(Heap& heap, const Request& request, PagesFrom from);

  /// Whether the device refuses pages altogether. It does if none has ever worked here, its last
  /// answer was a refusal, and a trial page does not work either. From then on no page is
  /// requested.
  bool areRefused();

  /// Every page of the heap's that lies wholly free goes back to where it was mapped first, if it
  /// is still mapped there. Or it goes aside (placing.hpp). Makes no device call. If the host is
  /// short of memory, pages that were not looked at stay where they are.
  void sendHome(Heap& heap) noexcept;

  std::uint64_t release(const std::vector<Heap*>& heaps, std::uint64_t bytes) override;
  /// The same for all free memory. The background thread, or a later miss, gives back what queued
  /// work may still use.
  void emptyCache(const std::vector<Heap*>& heaps);
  /// As SegmentBacking's.
  void collectGarbage(const std::vector<Heap*>& heaps, std::uint64_t bytes);
  void pin(const Block& block, std::uint32_t number, Pins& pins) override;
  void unpin(Pins& pins) noexcept;
  /// A graph may reach the page at another address, too.
  bool pinned(const Block& block) const override;
  std::unique_lock<Mutex> holdStill() const override { return std::unique_lock(mutex_); }
  std::uint64_t leastGrowth(const Request& request) const override {
    return roundUp(request.rounded(), pages::kUnit);
  }

  /// Brings pages back to where blocks lay in them. Pre: as pages::comeBack.
  void comeBack(std::vector<pages::Mapping*>& at) noexcept CISTERN_REQUIRES(mutex_) {
    pages::comeBack(ground_, at);
  }

  PageCounts counts() const;
  std::size_t hostBytes() const;

  /// Locks out everything here. For reports, which see all of it at rest.
  Mutex& mutex() const CISTERN_TSA(lock_returned(mutex_)) { return mutex_; }
  /// Pre: mutex() and all heaps' locks are held; `reserved` is what heaps count as such. Aborts on
  /// a broken invariant.
  void audit(std::uint64_t reserved) const;

  /// Ends the thread. It finishes what is under way in the background, and does nothing else.
  void stop() noexcept { background_.stop(); }
  /// Pre: stop(). If `driver` may still be called, waits for the device and gives everything back
  /// to it. Nothing else may be called afterwards.
  void shutDown(bool driver) noexcept;

 private:
  bool emptyHeap(Heap& heap);

  Engine& engine_;
  mutable Mutex mutex_;
  pages::Ground ground_ CISTERN_GUARDED_BY(mutex_);
  pages::Background background_;
};

}  // namespace cistern
