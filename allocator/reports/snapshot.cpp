// Every segment and block, as a picture. A heap may have a million blocks, and threads that want
// its lock do not wait that long: it is looked at a slice at a time, and they get the lock in
// between.
#include "allocator/reports/snapshot.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "allocator/engine/cache/thread_cache.hpp"
#include "allocator/engine/errors/engine_errors.hpp"
#include "cistern/allocator.hpp"

namespace cistern {
namespace {

/// The blocks of a slice: a fraction of a millisecond, also if none is in the processor's cache.
constexpr std::size_t kSlice = 4096;
/// Written whole before it is read. All heaps share one: to clear it takes longer than a small
/// heap.
using Slice = std::array<SnapshotBlock, kSlice>;
/// Between two slices. A thread that waits for the lock wakes up and takes it meanwhile.
constexpr std::chrono::microseconds kPause{1};

/// Looks at one heap. Holds its lock for a slice at a time.
class HeapWalk {
 public:
  HeapWalk(Engine& engine, Heap& heap, Slice& slice)
      : engine_(engine), heap_(heap), slice_(slice) {}

  void addTo(std::vector<SnapshotSegment>& all) {
    emptyCaches();
    for (const auto& [segment, base] : list()) {
      SnapshotSegment picture;
      if (walk(*segment, base, picture)) all.push_back(std::move(picture));
    }
  }

 private:
  using Listed = std::vector<std::pair<HeapSegment*, Address>>;
  /// The place in a segment where the next slice begins.
  struct Place {
    Address at = 0;                 ///< in places
    const Block* before = nullptr;  ///< the block that ended there
  };

  // Memory that threads keep is free. One cache after another: the owner of a full one waits the
  // longest.
  void emptyCaches() {
    for (std::size_t i = 0;; ++i) {
      const MutexLock lock(heap_.mutex());
      if (i >= heap_.caches().size()) return;
      const StillCaches still(heap_);
      heap_.caches()[i]->flush();
    }
  }

  Listed list() {
    Listed listed;
    const MutexLock lock(heap_.mutex());
    if (heap_.stream() == Heap::kNobodys) return listed;  // addresses alone, without memory
    sleeps_ = heap_.asleep();
    forEachSegment(heap_, [&](HeapSegment& s) { listed.emplace_back(&s, s.device_base); });
    return listed;
  }

  // False if the segment goes meanwhile: then the program has no block there.
  bool walk(HeapSegment& segment, Address base, SnapshotSegment& picture) {
    Place place;
    bool more = true;
    for (bool first = true; more; first = false) {
      if (!first) std::this_thread::sleep_for(kPause);
      {
        std::optional<MutexLock> pages;
        const bool on_host = mayLieOnHost();
        if (sleeps_ || on_host) pages.emplace(engine_.pages.mutex());
        const MutexLock lock(heap_.mutex());
        if (!isOurs(segment, base)) return false;
        if (first) place.at = segment.base;
        describe(segment, picture);
        more = takeSlice(segment, place, on_host);
      }
      append(picture);
    }
    return true;
  }

  bool mayLieOnHost() const { return !isOfDevice(heap_.memory()); }

  bool isOurs(const HeapSegment& segment, Address base) const {
    return segment.heap.load(std::memory_order_relaxed) == &heap_ && segment.device_base == base &&
           heap_.stream() != Heap::kNobodys;
  }

  void describe(const HeapSegment& segment, SnapshotSegment& picture) {
    picture.address = segment.device_base;
    picture.bytes = segment.bytes;
    picture.pool = heap_.pool().id();
    picture.stream = heap_.stream();
    picture.kind = segment.kind;
    picture.in_pages = isRange(segment);
    picture.number = picture.in_pages ? 0 : deviceSegmentOf(segment).number;
    picture.location = cistern::locationOf(heap_.memory());
  }

  // The block at `place.at`, or the one that covers it by now; null at the end.
  const Block* find(const HeapSegment& segment, const Place& place)
      CISTERN_REQUIRES(heap_.mutex()) {
    if (place.at == segment.base) return segment.first;
    const Block* const before = place.before;
    const bool still = before->state() != BlockState::kUnused && before->segment == &segment &&
                       before->end() == place.at;
    return still ? before->next : segment.covering(place.at);
  }

  // True if there is more. `on_host`: asks how much of each block lies there, under the pages'
  // lock.
  bool takeSlice(const HeapSegment& segment, Place& place, bool on_host)
      CISTERN_REQUIRES(heap_.mutex()) {
    const StillCaches still(heap_);
    count_ = 0;
    const Block* block = find(segment, place);
    for (; block != nullptr && count_ < kSlice; block = block->next) {
      const bool sleeps = sleeps_ && heap_.asleep();
      slice_[count_] = pictureOf(engine_, heap_, *block, sleeps, on_host);
      if (block->address() != place.at) beginAt(segment.onDevice(place.at), slice_[count_]);
      ++count_;
      place = {block->end(), block};
    }
    return block != nullptr;
  }

  // A block that began before the slice came about while nobody looked. What was there is in the
  // picture, so the rest of it counts as free.
  static void beginAt(Address address, SnapshotBlock& part) {
    part.bytes -= address - part.address;
    part.address = address;
    part.requested = 0;
    part.away = std::min(part.away, part.bytes);
    part.on_host = std::min(part.on_host, part.bytes - part.away);
    if (part.use != BlockUse::kUnmapped) part.use = BlockUse::kFree;
  }

  // Neighbours that are free are one, also where a thread keeps one of them.
  void append(SnapshotSegment& picture) {
    for (std::size_t i = 0; i < count_; ++i) {
      const SnapshotBlock& block = slice_[i];
      const bool joins = !picture.blocks.empty() && block.requested == 0 &&
                         picture.blocks.back().use == block.use &&
                         (block.use == BlockUse::kFree || block.use == BlockUse::kUnmapped);
      if (joins) {
        picture.blocks.back().bytes += block.bytes;
        picture.blocks.back().on_host += block.on_host;
        picture.blocks.back().away += block.away;
      } else {
        picture.blocks.push_back(block);
      }
    }
  }

  Engine& engine_;
  Heap& heap_;
  bool sleeps_ = false;  ///< asleep as the walk began
  std::size_t count_ = 0;
  Slice& slice_;
};

}  // namespace

// A segment that another heap has got meanwhile is in the picture of each that had it. The later
// one counts.
Snapshot snapshotOf(Engine& engine) {
  Snapshot snapshot;
  snapshot.device = engine.deviceName();
  const auto slice = std::make_unique<Slice>();
  for (Heap* heap : engine.heaps.all()) HeapWalk(engine, *heap, *slice).addTo(snapshot.segments);
  std::vector<SnapshotSegment>& all = snapshot.segments;
  std::ranges::stable_sort(all, {}, &SnapshotSegment::address);
  std::vector<SnapshotSegment> once;
  once.reserve(all.size());
  for (SnapshotSegment& segment : all) {
    while (!once.empty() && once.back().address + once.back().bytes > segment.address)
      once.pop_back();
    once.push_back(std::move(segment));
  }
  all = std::move(once);
  return snapshot;
}

Snapshot CachingAllocator::snapshot() const { return snapshotOf(engine_->here("snapshot")); }

}  // namespace cistern
