// A heap's identity: which heap it is, whose it is, and its lock. Also what others note of it under
// a lock of their own.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/cache/ownership.hpp"
#include "allocator/engine/heap/heap_segment.hpp"
#include "allocator/engine/pools/pool.hpp"

namespace cistern {

class HeapTable;
namespace pages {
struct Mapping;
}

/// Notes that the pages backing keeps of a heap, under the backing's lock.
struct PageNotes {
  /// The newest range of the kind, or null.
  HeapSegment*& newestRange(SizeKind kind) { return newest[std::size_t(kind)]; }
  /// The most memory that the heap had for the kind, in this pool.
  std::uint64_t& mostBacked(SizeKind kind) { return most_backed[std::size_t(kind)]; }

  std::vector<pages::Mapping*> aside{};  ///< homes (pages/placing.hpp); under the heap's lock too
  std::array<HeapSegment*, kSizeKindCount> newest{};
  std::array<std::uint64_t, kSizeKindCount> most_backed{};
};

/// Stream and pool change neither while the heap holds memory, nor while some of it is on its way
/// to the device. Anyone may ask at any time. The answer may be outdated a moment later, and code
/// that acts on it asks again under the lock. But the pool can be looked at. Its record was whole
/// before it was released to here, and lives as long as the allocator.
class HeapIdentity {
 public:
  HeapIdentity(Pool& pool, Stream stream)
      : pool_(&pool), stream_(stream), backing_(&pool.backing()) {}

  Stream stream() const { return stream_.load(std::memory_order_relaxed); }
  Pool& pool() const { return *pool_.load(std::memory_order_acquire); }
  /// Whether the stream has been forgotten (known_streams.hpp sets it). Then it is not asked, and
  /// look-ups for requests pass over the heap.
  bool gone() const { return gone_.load(std::memory_order_acquire); }
  void setGone(bool gone) { gone_.store(gone, std::memory_order_release); }
  /// Whether requests of that stream are for this heap, which had it a moment ago. Asked in this
  /// order: by the time it is not gone any more, it is another stream's.
  bool serves(Stream s) const { return !gone() && stream() == s; }
  /// Changes at most once, before the heap has ever had memory: Heap::leavePages.
  MemoryBacking& backing() const { return *backing_.load(std::memory_order_relaxed); }
  /// Whether its memory is pages, rather than segments.
  bool onPages() const { return backing().inPages(); }
  /// The stream that a block in use was allocated for.
  Stream streamOf(const Block& block) const {
    return ownership::isOwned(ownership::load(block)) ? stream() : block.use.stream;
  }
  Mutex& mutex() const CISTERN_TSA(lock_returned(mutex_)) { return mutex_; }

  /// So many heaps were made before it. table() is null, or knows whether it has memory for others.
  /// Both are set before anyone else sees it.
  std::size_t number() const { return number_; }
  HeapTable* table() const { return table_; }
  void join(HeapTable& table, std::size_t number) { table_ = &table, number_ = number; }

  PageNotes& pageNotes() { return page_notes_; }

 protected:
  /// It is that stream's from now on, in a pool with the same backing.
  void become(Pool& pool, Stream stream) noexcept {
    pool_.store(&pool, std::memory_order_release);
    stream_.store(stream, std::memory_order_relaxed);
    page_notes_.most_backed = {};
    setGone(false);
  }

  void setBacking(MemoryBacking& backing) noexcept { backing_ = &backing; }

 private:
  std::atomic<Pool*> pool_;
  std::atomic<Stream> stream_;
  std::atomic<bool> gone_{false};
  std::atomic<MemoryBacking*> backing_;
  mutable Mutex mutex_;
  std::size_t number_ = 0;
  HeapTable* table_ = nullptr;
  PageNotes page_notes_;
};

}  // namespace cistern
