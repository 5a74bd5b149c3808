#include "allocator/engine/giving_back/giving_back.hpp"

#include "allocator/engine/backing/imports.hpp"
#include "allocator/engine/giving_back/flush.hpp"
#include "allocator/engine/giving_back/in_hand.hpp"

namespace cistern {

// The pool's own heaps, and those that are nobody's in particular: mayGive has the rule.
// HeapTable::Offer states the same rule for searches.
static std::vector<Heap*> giversTo(Engine& engine, const Pool& pool, PageKind kind) {
  std::vector<Heap*> heaps = engine.heaps.all();
  std::erase_if(heaps, [&](const Heap* heap) { return !mayGive(*heap, pool, kind, false); });
  return heaps;
}

// Whatever their pages are: nothing moves to another heap here.
static std::vector<Heap*> unownedHeaps(Engine& engine) {
  std::vector<Heap*> heaps = engine.heaps.all();
  std::erase_if(
      heaps, [&](const Heap* heap) { return !heap->pool().givesTo(engine.default_pool, false); });
  return heaps;
}

// Blocks that threads keep, and blocks that a stream is stuck with, come to the heaps first.
static void gather(Engine& engine) {
  flushCaches(engine);
  engine.imports->retry();
  engine.pending.poll();
  if (engine.pending.waiting() > 0) {
    const MutexLock lock(engine.pressure_mutex);
    (void)engine.pending.waitForStuck();
  }
}

static void giveBackFree(Engine& engine, const Pool* only, bool unowned) {
  const InHand in_hand(engine);
  const MutexLock pressure(engine.pressure_mutex);
  const std::vector<Heap*> heaps = only      ? only->heaps()
                                   : unowned ? unownedHeaps(engine)
                                             : engine.heaps.all();
  engine.pages.emptyCache(heaps);
  (void)engine.segments.release(heaps, UINT64_MAX);
}

void emptyCache(Engine& engine, const Pool* only, bool unowned) {
  if (only == nullptr) (void)engine.hooks.tidy(Tidying::kEmptyCache);
  gather(engine);
  giveBackFree(engine, only, unowned);
}

void emptyCacheUntidied(Engine& engine) {
  gather(engine);
  giveBackFree(engine, nullptr, false);
}

std::uint64_t reservedBytes(const std::vector<Heap*>& heaps) {
  std::uint64_t reserved = 0;
  for (const Heap* heap : heaps) {
    const MutexLock lock(heap->mutex());
    reserved += heap->reservedBytes();
  }
  return reserved;
}

void trim(Engine& engine, const std::vector<Heap*>& heaps, std::uint64_t bytes) {
  flushCaches(engine);
  engine.pending.poll();
  const InHand in_hand(engine);
  const MutexLock pressure(engine.pressure_mutex);
  const std::uint64_t reserved = reservedBytes(heaps);
  if (reserved <= bytes) return;
  const std::uint64_t most = reserved - bytes, pages = engine.pages.release(heaps, most);
  if (pages < most) (void)engine.segments.release(heaps, most - pages);
}

// Free memory at the ends of a window need not be given back and made again. So compare with the
// request's own size, not with a whole segment or page.
bool giveBackFor(Engine& engine, const Request& request, Givers givers) {
  const PageKind kind = pagesOf(request);
  const std::vector<Heap*> heaps =
      givers == Givers::kAll ? engine.heaps.with(kind) : giversTo(engine, *request.pool, kind);
  std::vector<Heap*> mixed;  // they may have pages of the device
  if (kind == PageKind::kDevice) {
    mixed = engine.heaps.with(PageKind::kOverflow);
    const std::uint64_t most = engine.limit.limit() + freeBytes(heaps) + freeDeviceBytes(mixed);
    if (engine.limit.reserved() + request.rounded() > most) return false;
  }
  const std::uint64_t pages =
      engine.pages.releaseMixed(mixed) + engine.pages.release(heaps, UINT64_MAX);
  return engine.segments.release(heaps, UINT64_MAX) + pages > 0;
}

bool makeRoomFor(Engine& engine, const Request& request) {
  const std::vector<Heap*> heaps = giversTo(engine, *request.pool, pagesOf(request));
  if (engine.segments.release(heaps, UINT64_MAX) > 0) return true;
  const bool move = engine.options.recycle != Recycle::kOff && engine.options.reusesAcrossStreams();
  if (request.pool->onPages() && move) return false;
  return engine.pages.release(heaps, request.pool->rules().segmentFor(request)) > 0;
}

// If another thread gives memory back, or waits for some, that is for this request too.
void collectGarbage(Engine& engine) {
  const double part = engine.options.garbage_collection_threshold;
  if (part <= 0) return;
  const auto threshold = std::uint64_t(part * double(engine.limit.limit()));
  if (engine.limit.reserved() <= threshold) return;
  if (!engine.pressure_mutex.try_lock()) return;
  const MutexUnlock pressure(engine.pressure_mutex);
  engine.pages.collectGarbage(engine.heaps.with(PageKind::kDevice), threshold);
  engine.segments.collectGarbage(engine.heaps.all(), threshold);
}

}  // namespace cistern
