// A miss: the steps that it takes, in their order, and how often. fallback_steps.hpp has the steps.
#include <algorithm>
#include <bit>
#include <new>
#include <span>

#include "allocator/base/check.hpp"
#include "allocator/engine/giving_back/flush.hpp"
#include "allocator/engine/giving_back/in_hand.hpp"
#include "allocator/engine/overflow/overflow.hpp"
#include "allocator/engine/paths/fallback_steps.hpp"
#include "allocator/engine/paths/slow_path.hpp"
#include "allocator/engine/reports/accounting.hpp"
#include "allocator/engine/reports/out_of_memory.hpp"

namespace cistern::slow_path {
namespace {

// ---- The steps ----------------------------------------------------------------------------------

// The order is the rule. Steps that cost the program nothing come first, then steps that cost
// calls. Then come steps that take memory others may need. Then come steps that make the host wait.
// Last, small and large memory are mixed.
constexpr Step kSteps[] = {
    afterEvents,               // some blocks whose last use on other streams is complete by now
    afterTidying,              // what pools and graphs that have ended do not need
    afterGarbageCollection,    // what was unused for long, where a threshold is set
    moreMemory,                // pages moved or made; segments adopted or made
    afterAllEvents,            // all blocks whose last use on other streams is complete by now
    afterMakingRoom,           // parts of other streams' memory, or room made by giving back
    fromFreeHost,              // host memory that an earlier overflow has left
    afterPending,              // blocks that wait for other streams, a stream at a time
    afterResetGraphs,          // what graphs that were reset still hold
    afterTheDevice,            // what is complete when the whole device is
    afterGivingAllBack,        // all that lies free, given back and made again
    afterGivingLivePoolsBack,  // live pools' free memory too, given back and made again
    fromOtherKind,             // a small request out of large memory, or a large one out of small
};

constexpr Step kStepsOfCapture[] = {
    fromCapture,             // what the capture has freed, in the graph's order
    afterEvents,             // some blocks whose last use on other streams is complete by now
    afterTidying,            // what pools and graphs that have ended do not need
    moreMemory,              // pages moved or made; segments adopted or made
    afterAllEvents,          // all blocks whose last use on other streams is complete by now
    growTightly,             // a segment just as large as need be
    completePartsOfOthers,   // parts of other streams' memory, complete
    fromFreeHost,            // host memory that an earlier overflow has left
    fromOtherKindInCapture,  // a small request out of large memory, or a large one out of small
};

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

/// Most passes over the steps. Without a bound, other threads' activity could keep a thread here
/// forever.
constexpr int kTries = 8;

Block* goThrough(std::span<const Step> steps, Engine& engine, Heap& heap, const Request& request) {
  for (int tries = 0; tries < kTries; ++tries) {
    {
      const InHand in_hand(engine);
      if (Block* block = firstOf(steps, engine, heap, request)) return block;
      // Memory that others have freed meanwhile may lie in their caches, or still be in their
      // hands.
      if (!flushCaches(engine) && in_hand.alone()) return nullptr;
    }
    if (!InHand::waitForOthers(engine)) return nullptr;
  }
  return nullptr;
}

// ---- The program --------------------------------------------------------------------------------

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

// The program is asked late for memory that it can give up, which may be dear. A callback that says
// it has freed something although nothing has changed would be called for ever.
template <class Attempt>
Block* afterCallbacks(Attempt attempt_again, Engine& engine, const Request& request) {
  if (!engine.hooks.reclaim.any()) return nullptr;
  for (std::uint32_t attempt = 1;; ++attempt) {
    const Footing before(engine);
    if (!engine.hooks.reclaim(shortageOf(engine, request, attempt))) return nullptr;
    engine.made.requireHere("allocate");  // a callback may have forked
    flushCaches(engine);
    if (Block* block = attempt_again()) return block;
    if (Footing(engine) == before) return nullptr;
  }
}

/// The steps that come before the one that takes host memory.
std::span<const Step> onTheDevice(std::span<const Step> steps) {
  return steps.first(std::size_t(std::ranges::find(steps, Step{fromFreeHost}) - steps.begin()));
}

// Host memory is slow. So callbacks are asked before it serves, also where it lies free, and before
// the host waits.
Block* beforeOverflow(std::span<const Step> steps, Engine& engine, Heap& heap,
                      const Request& request) {
  if (!engine.hooks.reclaim.any() || !mayOverflow(engine, request)) return nullptr;
  const auto attempt = [&] { return goThrough(onTheDevice(steps), engine, heap, request); };
  if (Block* const block = attempt()) return block;
  return afterCallbacks(attempt, engine, request);
}

void refuseAsleep(const Request& request) {
  if (request.pool->asleep) [[unlikely]]
    throw PoolError("allocate: " + asleepText(*request.pool));
}

/// All that could serve. Null: nothing does.
Block* throughAll(std::span<const Step> steps, Engine& engine, Heap& heap, const Request& request) {
  const auto attempt = [&] {
    Block* const block = goThrough(steps, engine, heap, request);
    return block != nullptr ? block : fromNewHostMemory(engine, request);
  };
  if (Block* const block = beforeOverflow(steps, engine, heap, request)) return block;
  if (Block* const block = attempt()) return block;
  if (Block* const block = fromAllGivenBack(engine, request)) return block;
  return afterCallbacks(attempt, engine, request);
}

}  // namespace

// A pool that sleeps has nothing free, so that each request for it comes here. One that slept for a
// moment meanwhile may have room by now, which the steps did not see.
Block& fallBack(Engine& engine, Heap& heap, const Request& request) {
  const bool captured = request.capture != nullptr;
  const std::span<const Step> steps =
      captured ? std::span<const Step>(kStepsOfCapture) : std::span<const Step>(kSteps);
  Block* block = nullptr;
  for (int tries = 0;; ++tries) {
    const std::uint64_t times_asleep = request.pool->times_asleep;
    refuseAsleep(request);
    if (!captured) flushCaches(engine);
    engine.tick.fetch_add(1, std::memory_order_relaxed);
    block = throughAll(steps, engine, heap, request);
    if (block != nullptr) break;
    refuseAsleep(request);
    if (tries == kTries || request.pool->times_asleep == times_asleep)
      throwOutOfMemory(engine, request);
  }
  CISTERN_AUDIT(auditAtTick(engine));
  return *block;
}

}  // namespace cistern::slow_path
