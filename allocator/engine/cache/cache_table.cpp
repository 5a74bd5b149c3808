#include "allocator/engine/cache/cache_table.hpp"

#include <algorithm>
#include <new>

#include "allocator/base/ends_lock.hpp"
#include "allocator/base/thread_slots.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern {
namespace {

std::uint64_t nextTable() {
  static std::atomic<std::uint64_t> last{0};
  (void)endsMutex();  // made while it may throw
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

constinit ThreadCache CacheTable::nobodys_;

/// The caches of one thread, in all allocators. It may look whose they are as long as it lives;
/// hence those of a table that is gone are deleted, or used again, by their thread alone.
class CacheTable::Mine {
 public:
  Mine() = default;
  Mine(const Mine&) = delete;
  Mine& operator=(const Mine&) = delete;
  // After this the thread may still free and allocate; what it opens then goes in another round.
  ~Mine() {
    forgetSeen();
    const MutexLock ends(endsMutex());
    for (ThreadCache* cache : caches_) {
      if (cache->table() == 0) {
        delete cache;
      } else {
        const MutexLock lock(cache->heap().mutex());
        cache->close();
      }
    }
  }

  /// For one more. Throws std::bad_alloc.
  void makeRoom() {
    if (caches_.size() == caches_.capacity()) caches_.reserve(2 * caches_.size() + 1);
  }
  /// Pre, of both: there is room.
  void add(ThreadCache& cache) noexcept { caches_.push_back(&cache); }
  /// One of a table that is gone, of which a few are looked at, or a new one.
  ThreadCache& unused() {
    for (int looks = 0; looks < 2 && !caches_.empty(); ++looks) {
      next_ = next_ + 1 < caches_.size() ? next_ + 1 : 0;
      if (caches_[next_]->table() == 0) return *caches_[next_];
    }
    return *caches_.emplace_back(new ThreadCache);
  }

 private:
  std::vector<ThreadCache*> caches_;
  std::size_t next_ = 0;
};

CacheTable::CacheTable(Limits limits, const std::atomic<std::uint64_t>& tick, Totals& totals)
    : none_(limits.all == 0),
      totals_(totals),
      number_(nextTable()),
      ground_{number_, std::int64_t(limits.stacks), std::int64_t(limits.last),
              std::int64_t(limits.all), tick} {}

CacheTable::~CacheTable() {
  const MutexLock ends(endsMutex());
  const MutexLock own(mutex_);
  for (std::size_t i = 0; ThreadCache* const cache = at(i); ++i) {
    if (cache->owner().isOpen()) {
      cache->unbind();  // its thread may use it again at once
    } else {
      delete cache;
    }
  }
  for (const auto& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
}

ThreadCache* CacheTable::open(Heap& heap) noexcept {
  if (none_) return nullptr;
  // The counters come first: when the thread ends, what comes last goes first.
  ThreadCounters* const counters = totals_.join();
  if (counters == nullptr) return nullptr;
  try {
    Mine& mine = ThreadSlot<Mine>::mine();
    mine.makeRoom();
    ThreadCache* cache = findOrAdopt(heap, *counters, mine);
    if (cache == nullptr) add(*(cache = &mine.unused()), heap, *counters);
    seen_.caches[seenAt(heap.stream())] = cache;
    return seen_.last = cache;
  } catch (const std::bad_alloc&) {
    return nullptr;  // the heap serves without
  }
}

// The thread's own, or one that another thread has left; or null. The caches of a heap are as many
// as threads use it, those of a thread as the streams it uses.
ThreadCache* CacheTable::findOrAdopt(Heap& heap, ThreadCounters& counters, Mine& mine) noexcept {
  const MutexLock lock(heap.mutex());
  const auto find = [&](auto which) CISTERN_REQUIRES(heap.mutex()) {
    const auto found = std::ranges::find_if(
        heap.caches(), [&](const ThreadCache* cache) { return which(cache->owner()); });
    return found != heap.caches().end() ? *found : nullptr;
  };
  if (ThreadCache* const own = find([](const CacheOwner& of) { return of.isMine(); })) return own;
  ThreadCache* const left = find([](const CacheOwner& of) { return !of.isOpen(); });
  if (left == nullptr) return nullptr;
  left->open(counters);
  mine.add(*left);
  return left;
}

void CacheTable::add(ThreadCache& cache, Heap& heap, ThreadCounters& counters) {
  const MutexLock lock(mutex_);
  if (count_ == kMostCaches) throw std::bad_alloc();
  std::atomic<Chunk*>& chunk = chunks_[count_ / kChunk];
  if (chunk.load(std::memory_order_relaxed) == nullptr)
    chunk.store(new Chunk, std::memory_order_release);
  const MutexLock heap_lock(heap.mutex());
  heap.addCache(cache);  // the last that may throw
  cache.bind(number_, handle_, heap, std::uint32_t(count_), ground_);
  cache.open(counters);
  (*chunk.load(std::memory_order_relaxed))[count_++ % kChunk].store(&cache,
                                                                    std::memory_order_release);
}

void CacheTable::setHandle(std::uint64_t handle) noexcept {
  const MutexLock lock(mutex_);
  handle_ = handle;
  for (std::size_t i = 0; ThreadCache* const cache = at(i); ++i) cache->setHandle(handle);
}

std::size_t CacheTable::hostBytes() const {
  const MutexLock lock(mutex_);
  const std::size_t chunks = (count_ + kChunk - 1) / kChunk;
  return sizeof(*this) + chunks * sizeof(Chunk) + count_ * sizeof(ThreadCache);
}

}  // namespace cistern
