#include "allocator/engine/cache/cache_table.hpp"

#include <algorithm>
#include <new>

#include "allocator/base/process.hpp"
#include "allocator/base/registry.hpp"
#include "allocator/base/thread_slots.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern {
namespace {

/// A thread that ends finds out from it which of its caches still are; a table that goes waits
/// until such a thread has left.
using Alive = Registry<CacheTable>;

/// Caches of tables that are gone, and of threads that have ended. A cache is never deleted, since
/// a thread that had it may still look whose it is; and for the same reason only that thread may
/// use it again before it ends.
struct Spare {
  Mutex mutex;
  std::vector<ThreadCache*> caches CISTERN_GUARDED_BY(mutex);

  ThreadCache& take() {
    const MutexLock lock(mutex);
    if (caches.empty()) return *new ThreadCache;
    ThreadCache* const last = caches.back();
    caches.pop_back();
    return *last;
  }
  void give(ThreadCache& cache) noexcept {
    const MutexLock lock(mutex);
    try {
      caches.push_back(&cache);
    } catch (const std::bad_alloc&) {
      // One less to use again.
    }
  }
};

Spare& spare() {
  static auto* const all = [] {
    auto made = std::make_unique<Spare>();
    atFork([] { spare().mutex.takeForFork(); }, [] { spare().mutex.releaseAfterFork(); });
    return made.release();
  }();
  return *all;
}

// The last that is to be taken at a fork comes first: a thread that wants both locks takes the
// registry's first.
std::uint64_t enlist(CacheTable& table) {
  (void)spare();
  return Alive::add(table);
}

}  // namespace

constinit ThreadCache CacheTable::nobodys_;

/// The caches of one thread, in all allocators.
class CacheTable::Mine {
 public:
  Mine() = default;
  Mine(const Mine&) = delete;
  Mine& operator=(const Mine&) = delete;
  // After this the thread may still free and allocate; what it opens then goes in another round.
  ~Mine() {
    forgetSeen();
    const Alive::Held alive;
    for (ThreadCache* cache : caches) {
      CacheTable* const table = alive.find(cache->table());
      table != nullptr ? table->leave(*cache) : spare().give(*cache);
    }
  }

  /// One of a table that is gone, or null. A few are looked at.
  ThreadCache* unused() noexcept {
    for (int looks = 0; looks < 2 && !caches.empty(); ++looks) {
      next_ = next_ + 1 < caches.size() ? next_ + 1 : 0;
      if (caches[next_]->table() == 0) return caches[next_];
    }
    return nullptr;
  }

  std::vector<ThreadCache*> caches;

 private:
  std::size_t next_ = 0;
};

CacheTable::CacheTable(Limits limits, const std::atomic<std::uint64_t>& tick, Totals& totals)
    : none_(limits.all == 0),
      totals_(totals),
      number_(enlist(*this)),
      ground_{number_, std::int64_t(limits.small), std::int64_t(limits.large),
              std::int64_t(limits.all), tick} {}

CacheTable::~CacheTable() {
  Alive::Held alive;
  alive.remove(number_);
  const MutexLock own(mutex_);
  for (ThreadCache* cache : caches_) {
    const bool nobodys =
        !cache->owner().isOpen();  // asked first: its thread may use it again at once
    cache->unbind();
    if (nobodys) spare().give(*cache);
  }
}

ThreadCache* CacheTable::open(Heap& heap) noexcept {
  if (none_) return nullptr;
  // The counters come first: when the thread ends, what comes last goes first.
  ThreadCounters* const counters = totals_.join();
  if (counters == nullptr) return nullptr;
  try {
    Mine& mine = ThreadSlot<Mine>::mine();
    ThreadCache* const there = minesOf(heap);
    ThreadCache* cache = there ? there : openFirst(heap, *counters, mine);
    seen_.caches[seenAt(heap.stream())] = cache;
    return seen_.last = cache;
  } catch (const std::bad_alloc&) {
    return nullptr;  // the heap serves without
  }
}

// The caches of a heap are as many as threads use it, those of a thread as the streams it uses.
ThreadCache* CacheTable::minesOf(Heap& heap) noexcept {
  const MutexLock lock(heap.mutex());
  const auto mine =
      std::ranges::find_if(heap.caches(), [](auto* cache) { return cache->owner().isMine(); });
  return mine != heap.caches().end() ? *mine : nullptr;
}

// One that another thread has left here, one that the calling thread has from a table that is gone,
// or another.
ThreadCache* CacheTable::openFirst(Heap& heap, ThreadCounters& counters, Mine& mine) {
  mine.caches.reserve(mine.caches.size() + 1);
  ThreadCache* cache = adopt(heap, counters);
  if (cache == nullptr && (cache = mine.unused()) != nullptr) {
    add(*cache, heap, counters);
    return cache;
  }
  if (cache == nullptr) {
    cache = &spare().take();
    try {
      add(*cache, heap, counters);
    } catch (...) {
      spare().give(*cache);
      throw;
    }
  }
  mine.caches.push_back(cache);
  return cache;
}

ThreadCache* CacheTable::adopt(Heap& heap, ThreadCounters& counters) noexcept {
  const MutexLock lock(heap.mutex());
  for (ThreadCache* cache : heap.caches()) {
    if (cache->owner().isOpen()) continue;
    cache->open(counters);
    return cache;
  }
  return nullptr;
}

void CacheTable::add(ThreadCache& cache, Heap& heap, ThreadCounters& counters) {
  const MutexLock lock(mutex_);
  const std::size_t index = caches_.size() + 1;
  if (index > kMostCaches) throw std::bad_alloc();
  while (made_.size() <= index / kChunk) {
    made_.push_back(std::make_unique<Chunk>());
    chunks_[made_.size() - 1].store(made_.back().get(), std::memory_order_release);
  }
  caches_.reserve(index);
  ground_.filled.makeRoom(index);
  const MutexLock heap_lock(heap.mutex());
  heap.addCache(cache);  // the last that may throw
  caches_.push_back(&cache);
  cache.bind(number_, handle_, heap, std::uint32_t(index), ground_);
  cache.open(counters);
  made_.back()->caches[index % kChunk].store(&cache, std::memory_order_release);
}

void CacheTable::setHandle(std::uint64_t handle) noexcept {
  const MutexLock lock(mutex_);
  handle_ = handle;
  for (ThreadCache* cache : caches_) cache->setHandle(handle);
}

void CacheTable::leave(ThreadCache& cache) noexcept {
  const MutexLock lock(cache.heap().mutex());
  cache.close();
}

std::size_t CacheTable::hostBytes() const {
  const MutexLock lock(mutex_);
  return sizeof(*this) + made_.size() * sizeof(Chunk) + caches_.size() * sizeof(ThreadCache);
}

}  // namespace cistern
