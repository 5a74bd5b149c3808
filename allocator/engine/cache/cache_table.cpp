#include "allocator/engine/cache/cache_table.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "allocator/base/ends_lock.hpp"
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

// Caches of a table that is gone are deleted by their thread alone, which may look at them. After
// this the thread may still free and allocate. Caches that it opens then go in another round.
void ThreadCounters::letCachesGo() noexcept {
  if (caches.empty()) return;
  CacheTable::forgetSeen();
  for (ThreadCache* cache : caches) {
    if (cache->table() == 0) {
      delete cache;
    } else {
      const MutexLock lock(cache->heap().mutex());
      cache->close();
    }
  }
  caches.clear();
}

CacheTable::CacheTable(Limits limits, const std::atomic<std::uint64_t>& tick, Totals& totals)
    : totals_(totals),
      number_(nextTable()),
      ground_{number_, std::int64_t(limits.stacks), std::int64_t(limits.last),
              std::int64_t(limits.all), tick} {}

CacheTable::~CacheTable() {
  const MutexLock ends(endsMutex());
  const MutexLock own(mutex_);
  for (std::size_t i = 0; ThreadCache* const cache = at(i); ++i) {
    if (cache->isOpen()) {
      cache->unbind();  // its thread may look at it
    } else {
      delete cache;
    }
  }
  for (const auto& chunk : chunks_) delete chunk.load(std::memory_order_relaxed);
}

ThreadCache* CacheTable::open(Heap& heap) noexcept try {
  ThreadCounters* const counters = ground_.most_stacked == 0 ? nullptr : totals_.join();
  if (counters == nullptr) return nullptr;
  std::vector<ThreadCache*>& mine = counters->caches;
  if (mine.size() == mine.capacity()) mine.reserve(2 * mine.size() + 1);
  ThreadCache* const there = findOrAdopt(heap, *counters);
  ThreadCache& cache = there ? *there : make(heap, *counters);
  seen_.caches[seenAt(heap.stream())] = &cache;
  return seen_.last = &cache;
} catch (const std::bad_alloc&) {
  return nullptr;  // the heap serves without
}

// The thread's own, or one that another thread has left; or null. A heap has as many caches as
// threads use it.
ThreadCache* CacheTable::findOrAdopt(Heap& heap, ThreadCounters& counters) noexcept {
  const MutexLock lock(heap.mutex());
  const std::vector<ThreadCache*>& all = heap.caches();
  const auto own = std::ranges::find(all, true, &ThreadCache::isMine);
  if (own != all.end()) return *own;
  const auto left = std::ranges::find(all, false, &ThreadCache::isOpen);
  if (left == all.end()) return nullptr;
  (*left)->open(counters);
  counters.caches.push_back(*left);
  return *left;
}

ThreadCache& CacheTable::make(Heap& heap, ThreadCounters& counters) {
  const MutexLock lock(mutex_);
  if (count_ == kMostCaches) throw std::bad_alloc();
  std::atomic<Chunk*>& chunk = chunks_[count_ / kChunk];
  if (chunk.load(std::memory_order_relaxed) == nullptr)
    chunk.store(new Chunk, std::memory_order_release);
  auto cache =
      std::make_unique<ThreadCache>(number_, handle_, heap, std::uint32_t(count_), ground_);
  const MutexLock heap_lock(heap.mutex());
  heap.addCache(*cache);  // the last that may throw
  cache->open(counters);
  (*chunk.load(std::memory_order_relaxed))[count_++ % kChunk].store(cache.get(),
                                                                    std::memory_order_release);
  counters.caches.push_back(cache.get());
  return *cache.release();
}

void CacheTable::setHandle(std::uint64_t handle) noexcept {
  const MutexLock lock(mutex_);
  handle_ = handle;
  for (std::size_t i = 0; ThreadCache* const cache = at(i); ++i) cache->setHandle(handle);
}

std::size_t CacheTable::hostBytes() const {
  const MutexLock lock(mutex_);
  const std::size_t chunks = (count_ + kChunk - 1) / kChunk;
  const std::size_t stacks = ground_.stacks.load(std::memory_order_relaxed);
  return sizeof(*this) + chunks * sizeof(Chunk) + count_ * sizeof(ThreadCache) +
         stacks * CachedBlocks::kStacksBytes;
}

}  // namespace cistern
