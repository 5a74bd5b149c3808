// A miss: the steps that it tries, one after another, until one finds a block. The table at the end
// has their order.
//
// A step is called without a heap's lock. It returns null if it has found nothing. If it has made
// memory free that earlier steps would find, it sets Miss::again: the ladder begins anew.
#include <algorithm>
#include <bit>
#include <new>
#include <optional>

#include "allocator/base/check.hpp"
#include "allocator/engine/backing/imports.hpp"
#include "allocator/engine/capture/live_capture.hpp"
#include "allocator/engine/errors/engine_errors.hpp"
#include "allocator/engine/exchange/exchange.hpp"
#include "allocator/engine/paths/slow_path.hpp"

namespace cistern::slow_path {
namespace {

/// Most passes over the steps because of other threads. Without a bound, their activity could keep
/// a thread here forever.
constexpr int kTries = 8;

/// The numbers that change when memory becomes free, here or elsewhere on the device.
struct Footing {
  explicit Footing(Engine& engine)
      : freed(engine.totals.read()[Stat::kAllocation].freed),
        reserved(engine.limit.reserved()),
        device_free(deviceFree(engine)) {}
  bool operator==(const Footing&) const = default;

  std::int64_t freed;  ///< blocks, so far
  std::uint64_t reserved, device_free;
};

/// How often a miss has asked the program for memory that it can give up.
struct Asked {
  std::uint32_t attempts = 0;
  std::optional<Footing> before;  ///< the last attempt
  bool in_vain = false;           ///< it is not asked again
};

/// A request that the heap's free memory does not serve.
struct Miss {
  Engine& engine;
  Heap& heap;
  const Request& request;
  bool unsearched = false;          ///< the heap may have got free memory since it was searched
  bool again = false;               ///< the first step is next
  int passes = 0;                   ///< that were inconclusive, as other threads had memory in hand
  std::optional<InHand> in_hand{};  ///< since the pass began
  Asked asked_early{}, asked{};     ///< before host memory serves; at last
  int heard = 0;                    ///< times that hooks had to hear of memory before it had room
};

using Step = Block* (*)(Miss& miss);

/// The requests that try a step. A capture neither waits nor gives back.
enum class For : std::uint8_t {
  kAll,
  kCapture,
  kProgram,       ///< those outside of captures
  kUnderPressure  ///< the same, one thread at a time: with pressure_mutex held
};

/// The memory of the pools whose requests try a step. A pool may go from pages to segments on the
/// way: PoolTable::leavePages.
enum class In : std::uint8_t { kEither, kPages, kSegments };

struct Rung {
  Step step;
  For whom = For::kAll;
  In memory = In::kEither;
};

// Whether memory that could be of use waits for hooks to hear of it, here or on another thread.
bool hooksAreDue(const Miss& miss) {
  const MemoryHooks& hooks = miss.engine.memory_hooks;
  return hooks.due() && !hooks.inside();
}

// Memory that steps have taken out of use goes back to the device once hooks have heard of it. Only
// then is there room. The hooks may wait for a thread that waits for those with memory in hand.
Block* afterHooks(Miss& miss) {
  constexpr int kMost = 1'000;  // each has given memory back, if not for this request
  MemoryHooks& hooks = miss.engine.memory_hooks;
  const std::uint64_t before = hooks.returned();
  miss.in_hand.reset();
  hooks.deliver(MemoryHooks::Wait::kYes);
  miss.again = hooks.returned() != before && ++miss.heard < kMost;
  if (!miss.again) miss.in_hand.emplace(miss.engine);
  return nullptr;
}

Block* tried(const Rung& rung, Miss& miss) {
  const Request& request = miss.request;
  if (rung.memory != In::kEither && request.pool->onPages() != (rung.memory == In::kPages))
    return nullptr;
  const bool captured = request.capture != nullptr;
  if (rung.whom != For::kAll && captured != (rung.whom == For::kCapture)) return nullptr;
  if (rung.whom != For::kUnderPressure) return rung.step(miss);
  {
    const MutexLock lock(miss.engine.pressure_mutex);
    if (Block* const block = rung.step(miss)) return block;
  }
  return hooksAreDue(miss) ? afterHooks(miss) : nullptr;
}

/// The block of the first step that finds one; null if none does.
template <std::size_t N>
Block* firstOf(const Rung (&rungs)[N], Miss& miss) {
  for (const Rung& rung : rungs) {
    if (Block* const block = tried(rung, miss)) return block;
  }
  return nullptr;
}

// ---- What there is ------------------------------------------------------------------------------

Block* search(Miss& miss) {
  const MutexLock lock(miss.heap.mutex());
  return miss.heap.allocate(miss.request);
}

Block* fromCapture(Miss& miss) {
  return miss.request.capture ? liveCaptureOf(miss.request).take(miss.heap, miss.request) : nullptr;
}

// A miss pays for a bounded number of blocks that wait.
Block* afterEvents(Miss& miss) {
  const bool any = miss.engine.pending.poll(PendingFrees::kMany);
  return any || std::exchange(miss.unsearched, false) ? search(miss) : nullptr;
}

Block* afterTidying(Miss& miss) {
  Hooks& hooks = miss.engine.hooks;
  return hooks.untidy > 0 && hooks.tidy(Tidying::kMiss) ? search(miss) : nullptr;
}

// Gives memory back rather than finding any; the growth that follows has the room.
Block* afterGarbageCollection(Miss& miss) {
  collectGarbage(miss.engine);
  return nullptr;
}

Block* fromLenders(Miss& miss) { return takeFromLenders(miss.engine, miss.heap, miss.request); }

// kComplete takes other heaps' pages only if their last use is complete. kQueued takes, at last,
// also pages whose last use is queued: the stream waits for it. A device may claim pages and refuse
// each: then memory comes in segments from the first request on.
Block* morePages(Miss& miss) {
  Engine& engine = miss.engine;
  const Request& request = miss.request;
  const auto place = [&](PagesFrom from) { return engine.pages.place(miss.heap, request, from); };
  const bool captured = request.capture != nullptr;
  if (captured || engine.pools.anyLenders(request)) {
    if (Block* block = place(PagesFrom::kComplete)) return block;
    if (Block* block = captured ? nullptr : fromLenders(miss)) return block;
  }
  if (Block* block = captured ? nullptr : place(PagesFrom::kQueued)) return block;
  if (engine.pages.areRefused()) engine.pools.leavePages();
  return nullptr;
}

// Whether other streams' work is complete is no matter for a source before memory is short. Those
// who register its segments with other processes need the same segments in each, in one order.
Block* moreSegments(Miss& miss) {
  Engine& engine = miss.engine;
  const Request& request = miss.request;
  if (request.pool->source() != nullptr) return engine.segments.grow(miss.heap, request);
  if (Block* block = takeComplete(engine, miss.heap, request, Extent::kSegments)) return block;
  const bool waits =
      engine.options.cross_stream_reuse == CrossStreamReuse::kWait && engine.progress.ordersSoon();
  if (waits && !request.capture) {
    if (Block* block = loanInOrder(engine, miss.heap, request)) return block;
  }
  return engine.segments.grow(miss.heap, request);
}

// A request that would else be refused pays for all blocks that wait for events. Blocks whose pool
// is being captured into may then have to wait for all streams. A second round picks these up.
Block* afterAllEvents(Miss& miss) {
  constexpr Rung kFound[] = {
      {search}, {morePages, For::kAll, In::kPages}, {moreSegments, For::kAll, In::kSegments}};
  for (int times = 0; times < 2 && miss.engine.pending.poll(); ++times) {
    if (Block* block = firstOf(kFound, miss)) return block;
  }
  return nullptr;
}

Block* growTightly(Miss& miss) { return miss.engine.segments.grow(miss.heap, miss.request, true); }

Block* partsOfOthers(Miss& miss) {
  if (Block* block = takeComplete(miss.engine, miss.heap, miss.request, Extent::kParts))
    return block;
  return miss.request.capture ? nullptr : loanInOrder(miss.engine, miss.heap, miss.request);
}

// Whole pages of other streams were asked for already.
Block* partsOfOthersPages(Miss& miss) {
  Block* const block = search(miss);
  return block ? block : partsOfOthers(miss);
}

// Small and large blocks are kept apart so that a small one does not hold a large page. That is
// worth less than the request.
Block* fromOtherKind(Miss& miss) {
  constexpr Rung kFree[] = {
      {fromCapture, For::kCapture}, {search}, {partsOfOthers}, {fromLenders, For::kProgram}};
  Request request = miss.request;
  request.kind = request.kind == SizeKind::kSmall ? SizeKind::kLarge : SizeKind::kSmall;
  Miss other{miss.engine, miss.heap, request};
  return firstOf(kFree, other);
}

Block* afterAllHooks(Miss& miss) { return hooksAreDue(miss) ? afterHooks(miss) : nullptr; }

// ---- Host memory --------------------------------------------------------------------------------

template <Block* (*from)(Engine&, const Request&)>
Block* fromHost(Miss& miss) {
  return from(miss.engine, miss.request);
}

// ---- Under pressure -----------------------------------------------------------------------------

Block* afterMakingRoom(Miss& miss) CISTERN_REQUIRES(miss.engine.pressure_mutex) {
  if (Block* block = search(miss)) return block;
  if (!makeRoomFor(miss.engine, miss.request) || hooksAreDue(miss)) return nullptr;
  return morePages(miss);
}

// Giving a segment back waits for all queued work. So if there is such work, other streams' memory
// comes first. Otherwise it comes last: taken in parts it falls to pieces.
Block* afterGivingSegmentsBack(Miss& miss) CISTERN_REQUIRES(miss.engine.pressure_mutex) {
  constexpr Rung kAtLast[] = {{growTightly}, {fromLenders}};
  Engine& engine = miss.engine;
  if (Block* block = search(miss)) return block;
  const bool idle = streamsAreIdle(engine);
  if (Block* block = idle ? nullptr : partsOfOthers(miss)) return block;
  engine.retries.fetch_add(1, std::memory_order_relaxed);
  while (makeRoomFor(miss.engine, miss.request)) {
    if (hooksAreDue(miss)) return nullptr;
    if (Block* block = engine.segments.grow(miss.heap, miss.request)) return block;
  }
  if (Block* block = firstOf(kAtLast, miss)) return block;
  return idle ? partsOfOthers(miss) : nullptr;
}

constexpr Rung kWhatThereIsNow[] = {{morePages, For::kAll, In::kPages},
                                    {moreSegments, For::kAll, In::kSegments},
                                    {partsOfOthersPages, For::kAll, In::kPages},
                                    {afterMakingRoom, For::kAll, In::kPages},
                                    {afterGivingSegmentsBack, For::kAll, In::kSegments}};

// If `wait()` finds nothing to wait for, other threads have released the blocks by then. This
// thread then searches once more. If no block waits before a round, the step ends.
Block* afterPending(Miss& miss) CISTERN_REQUIRES(miss.engine.pressure_mutex) {
  Engine& engine = miss.engine;
  while (engine.pending.waiting() > 0) {
    engine.waits.fetch_add(1, std::memory_order_relaxed);
    if (!engine.pending.wait()) return search(miss);  // others have released it
    if (Block* block = search(miss)) return block;
    Block* const block = miss.request.pool->onPages() ? firstOf(kWhatThereIsNow, miss)
                                                      : afterGivingSegmentsBack(miss);
    if (block != nullptr || hooksAreDue(miss)) return block;
  }
  return nullptr;
}

// The pools call observers of released pools only without the lock, at the first steps.
Block* afterResetGraphs(Miss& miss) CISTERN_REQUIRES(miss.engine.pressure_mutex) {
  miss.again = miss.engine.hooks.tidy(Tidying::kLastResort);
  return nullptr;
}

// A stream that was destroyed cannot be asked. Its work is complete when the whole device is idle.
Block* afterTheDevice(Miss& miss) CISTERN_REQUIRES(miss.engine.pressure_mutex) {
  Engine& engine = miss.engine;
  engine.waits.fetch_add(1, std::memory_order_relaxed);
  if (!engine.progress.completeAll(engine.heaps.all())) return nullptr;
  engine.imports->retry();
  return firstOf(kWhatThereIsNow, miss);
}

// Free memory may be of a size, or at a place, that serves nobody.
template <Givers givers>
Block* afterGivingBack(Miss& miss) CISTERN_REQUIRES(miss.engine.pressure_mutex) {
  if (!giveBackFor(miss.engine, miss.request, givers) || hooksAreDue(miss)) return nullptr;
  return firstOf(kWhatThereIsNow, miss);
}

// ---- Other threads, and the program -------------------------------------------------------------

Block* beginPass(Miss& miss) {
  miss.in_hand.emplace(miss.engine);
  return nullptr;
}

// Memory that others have freed meanwhile may lie in their caches, or still be in their hands.
Block* afterOthers(Miss& miss) {
  const bool conclusive = !flushCaches(miss.engine) && miss.in_hand->alone();
  miss.in_hand.reset();
  miss.again = !conclusive && InHand::waitForOthers(miss.engine) && ++miss.passes < kTries;
  return nullptr;
}

// Whether the program has freed something: then all steps are tried again. A callback that says so
// although nothing has changed would be called for ever.
bool askProgram(Miss& miss, Asked& asked) {
  Engine& engine = miss.engine;
  if (asked.in_vain || !engine.hooks.reclaim.any()) return false;
  const Footing now(engine);
  asked.in_vain = asked.before == now ||
                  !engine.hooks.reclaim(shortageOf(engine, miss.request, ++asked.attempts));
  if (asked.in_vain) return false;
  asked.before = now;
  engine.made.requireHere("allocate");  // a callback may have forked
  flushCaches(engine);
  return true;
}

// The program is asked late for memory that it can give up, which may be dear.
Block* afterCallbacks(Miss& miss) {
  miss.again = askProgram(miss, miss.asked);
  miss.passes = 0;
  return nullptr;
}

// Host memory is slow. So callbacks are asked before it serves, also where it lies free, and before
// the host waits. The steps up to here are tried once more when they have nothing to give.
Block* afterEarlyCallbacks(Miss& miss) {
  Asked& asked = miss.asked_early;
  if (asked.in_vain || !miss.engine.hooks.reclaim.any() || !mayOverflow(miss.engine, miss.request))
    return nullptr;
  (void)afterOthers(miss);
  if (miss.again) return nullptr;
  (void)askProgram(miss, asked);
  miss.again = true;
  miss.passes = 0;
  return nullptr;
}

// ---- The ladder ---------------------------------------------------------------------------------

// The order is the rule. Steps that cost the program nothing come first, then steps that cost
// calls. Then come steps that take memory others may need. Then come steps that make the host wait.
// Then small and large memory are mixed. Last come what other threads have in hand, host memory,
// and what the program can give up.
constexpr Rung kLadder[] = {
    {beginPass},
    // what the capture has freed, in the graph's order
    {fromCapture, For::kCapture},
    // some blocks whose last use on other streams is complete by now
    {afterEvents},
    // what pools and graphs that have ended do not need
    {afterTidying},
    // what was unused for long, where a threshold is set
    {afterGarbageCollection, For::kProgram},
    // pages moved or made; segments adopted or made
    {morePages, For::kAll, In::kPages},
    {moreSegments, For::kAll, In::kSegments},
    // all blocks whose last use on other streams is complete by now
    {afterAllEvents},
    // a segment just as large as need be
    {growTightly, For::kCapture, In::kSegments},
    // parts of other streams' memory: complete ones, or parts that the stream is made to wait for
    {partsOfOthers, For::kCapture},
    {partsOfOthersPages, For::kProgram, In::kPages},
    // room made by giving back; with segments, parts of other streams' memory too
    {afterMakingRoom, For::kUnderPressure, In::kPages},
    {afterGivingSegmentsBack, For::kUnderPressure, In::kSegments},
    // what the program can give up, where host memory is next
    {afterEarlyCallbacks},
    // host memory that an earlier overflow has left
    {fromHost<fromFreeHostMemory>},
    // blocks that wait for other streams, a stream at a time
    {afterPending, For::kUnderPressure},
    // what graphs that were reset still hold
    {afterResetGraphs, For::kUnderPressure},
    // what is complete when the whole device is
    {afterTheDevice, For::kUnderPressure},
    // all that lies free, given back and made again; then live pools' free memory too
    {afterGivingBack<Givers::kUnowned>, For::kUnderPressure},
    {afterGivingBack<Givers::kAll>, For::kUnderPressure},
    // a small request out of large memory, or a large one out of small
    {fromOtherKind},
    // what other threads had in hand meanwhile
    {afterOthers},
    // new pages of host memory; the same, once all that lies free is given back
    {fromHost<fromNewHostMemory>},
    {fromHost<fromAllGivenBack>},
    // what hooks had to hear of first
    {afterAllHooks, For::kProgram},
    // what the program can give up
    {afterCallbacks},
};

/// Null: nothing serves.
Block* climb(Miss& miss) {
  for (std::size_t at = 0; at < std::size(kLadder);) {
    if (Block* const block = tried(kLadder[at], miss)) return block;
    miss.unsearched |= miss.again;
    at = std::exchange(miss.again, false) ? 0 : at + 1;
  }
  return nullptr;
}

void refuseAsleep(const Request& request) {
  if (request.pool->asleep) [[unlikely]]
    throw PoolError("allocate: " + asleepText(*request.pool));
}

// An audit visits every block. So it runs at each early tick, and later ever more seldom. It takes
// host memory. If the host has none, the block that was found must not be lost: a later audit will
// do.
[[maybe_unused]] void auditAtTick(Engine& engine) noexcept {
  const std::uint64_t tick = engine.now();
  if (tick >= 256 && !std::has_single_bit(tick)) return;
  try {
    audit(engine);
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

// A pool that sleeps has nothing free, so that each request for it comes here. One that slept for a
// moment meanwhile may have room by now, which the steps did not see.
Block& fallBack(Engine& engine, Heap& heap, const Request& request, bool searched) {
  const DeliverAtEnd deliver(engine.memory_hooks);
  Block* block = nullptr;
  for (int tries = 0; block == nullptr; ++tries) {
    const std::uint64_t times_asleep = request.pool->times_asleep;
    refuseAsleep(request);
    const bool flushed = request.capture == nullptr && flushCaches(engine);
    engine.tick.fetch_add(1, std::memory_order_relaxed);
    Miss miss{engine, heap, request, flushed || !searched || tries > 0};
    block = climb(miss);
    if (block != nullptr) break;
    refuseAsleep(request);
    if (tries == kTries || request.pool->times_asleep == times_asleep)
      throwOutOfMemory(engine, request);
  }
  CISTERN_AUDIT(auditAtTick(engine));
  return *block;
}

}  // namespace cistern::slow_path
