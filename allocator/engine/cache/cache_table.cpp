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

void takeForFork();
void releaseAfterFork();

std::uint64_t enlist(CacheTable& table) {
  static const bool forks = [] {
    atFork(takeForFork, releaseAfterFork);
    return true;
  }();
  return forks ? Alive::add(table) : 0;
}

/// So many tables are gone.
std::atomic<std::uint64_t> tables_gone{0};

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
  static auto* const all = new Spare;
  return *all;
}

// In the order in which a thread that wants both takes them.
void takeForFork() {
  Alive::takeForFork();
  spare().mutex.takeForFork();
}

void releaseAfterFork() {
  spare().mutex.releaseAfterFork();
  Alive::releaseAfterFork();
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
    for (const Owned& entry : entries) {
      CacheTable* const table = alive.find(entry.table);
      table != nullptr ? table->leave(*entry.cache) : spare().give(*entry.cache);
    }
  }

  std::vector<Owned> entries;
  std::uint64_t looked_after = 0;  ///< what tables_gone was when no cache was found unused
};

CacheTable::CacheTable(Limits limits, const std::atomic<std::uint64_t>& tick, Totals& totals)
    : limits_(limits),
      totals_(totals),
      number_(enlist(*this)),
      ground_{number_, std::int64_t(limits.all), tick, filled_} {}

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
  tables_gone.fetch_add(1, std::memory_order_release);
}

ThreadCache* CacheTable::open(Heap& heap) noexcept {
  if (limits_.all == 0) return nullptr;
  // The counters come first: when the thread ends, what comes last goes first.
  ThreadCounters* const counters = totals_.join();
  if (counters == nullptr) return nullptr;
  try {
    auto& entries = ThreadSlot<Mine>::mine().entries;
    ThreadCache* const there = minesOf(heap);
    ThreadCache* cache = there ? there : openFirst(heap, *counters, entries);
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
ThreadCache* CacheTable::openFirst(Heap& heap, ThreadCounters& counters,
                                   std::vector<Owned>& entries) {
  entries.reserve(entries.size() + 1);
  if (ThreadCache* const left = adopt(heap, counters)) {
    entries.push_back({number_, left});
    return left;
  }
  const auto own = unusedOf(entries);
  ThreadCache& cache = own != entries.end() ? *own->cache : spare().take();
  try {
    add(cache, heap, counters);
  } catch (...) {
    if (own == entries.end()) spare().give(cache);
    throw;
  }
  own != entries.end() ? void(*own = {number_, &cache}) : entries.push_back({number_, &cache});
  return &cache;
}

// Looked for only where a table has gone since it was looked for in vain.
std::vector<CacheTable::Owned>::iterator CacheTable::unusedOf(std::vector<Owned>& entries) {
  Mine& all = ThreadSlot<Mine>::mine();
  const std::uint64_t gone = tables_gone.load(std::memory_order_acquire);
  if (all.looked_after == gone) return entries.end();
  const auto unused = std::find_if(entries.begin(), entries.end(),
                                   [](const Owned& entry) { return entry.cache->table() == 0; });
  if (unused == entries.end()) all.looked_after = gone;
  return unused;
}

ThreadCache* CacheTable::adopt(Heap& heap, ThreadCounters& counters) noexcept {
  const MutexLock lock(heap.mutex());
  for (ThreadCache* cache : heap.caches()) {
    if (cache->owner().isOpen()) continue;
    cache->open(limits_.small, limits_.large, counters);
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
  filled_.makeRoom(index);
  const MutexLock heap_lock(heap.mutex());
  heap.addCache(cache);  // the last that may throw
  caches_.push_back(&cache);
  cache.bind(number_, handle_, heap, std::uint32_t(index), ground_);
  cache.open(limits_.small, limits_.large, counters);
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
